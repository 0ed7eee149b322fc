"""Requests that belong to no other room, a file for each noun, and the model of a Python program.

A request returns values, and raises `GenodiffError`. Its `answer` imports heavy rooms itself, so
that a usage error comes before torch is imported. What its command prints stands beside it.
"""
