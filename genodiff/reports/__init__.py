"""Pages and figures of what was measured.

    rows           each file's own: numbers with names
    figure         `figures.py` and `chart.py`, of `shapes.py`: drawn twice, wide and narrow
    table          `html.py`: with intervals
    page           `template.py`: one HTML file that needs nothing
    folder         `folder.py`: a report of a run

Read `html.py`, `figures.py`, `scorecard_page.py`.
"""
