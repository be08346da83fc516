"""Rewrite the two generated files: `python -m dragoman.runtime.config docs/reference/config.md contrib/dragoman.toml`."""

from __future__ import annotations

import sys
from pathlib import Path

from dragoman.runtime.config.page import render_markdown, render_toml
from dragoman.runtime.config.sections import Config

page, file = sys.argv[1:]
Path(page).write_text(render_markdown(), encoding="utf-8")
Path(file).write_text(render_toml(Config()), encoding="utf-8")
