"""The regression gate: did a commit make quartbench slower? asv measures, one pure function decides. And the history.

`verdict` holds the rule, `thresholds` its limits, `commits` and `suite` talk to git and asv, `report` writes;
`history` reads what asv has of all commits, `page` draws it.
"""
