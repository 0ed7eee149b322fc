"""Designs: regions changed within rules.

    rules          `constraints/design_rules.py`: what a design must satisfy
    region         `design_regions.py`: intervals that may change
    line           `contig_line.py`: a contig, or a circle that is cut
    space          `constraints/constraint.py`: the symbols of each position
    design         `design_drawing.py`: a sequence with its edits, and what was changed

Read `request.py`, `design_regions.py`, `design_drawing.py`.
"""
