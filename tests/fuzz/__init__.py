"""Hostile problems by their numbers, a truth for each, and many solves that must say nothing false of it.

``python -m tests.fuzz`` works through the numbers; ``test_fuzz.py`` takes the first of them, with truths that are kept.
"""
