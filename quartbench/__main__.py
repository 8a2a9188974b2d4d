"""``python -m quartbench``: the same as the command ``quartbench``."""

from quartbench.cli import main

if __name__ == "__main__":
    main()
