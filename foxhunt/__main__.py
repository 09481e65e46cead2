"""`python -m foxhunt`."""

from foxhunt.cli import main

if __name__ == "__main__":
    main()
