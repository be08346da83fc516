"""The Python SDK: `App`, its jobs and its worker. `from dragoman import App` is the way in."""
