"""What a Python program calls, and the command line: one file for each verb.

A verb is a function: first what it works on, then options by keyword, with the names of the
command line's flags. It returns values, prints nothing, and raises `GenodiffError`. Heavy rooms
are imported inside the functions, so that a usage error comes before torch is imported.
"""
