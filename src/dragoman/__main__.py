"""Entry point of `python -m dragoman`."""

from dragoman.cli import main

if __name__ == "__main__":
    main()
