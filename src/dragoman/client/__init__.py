"""The Python SDK: `App`, its jobs and its worker. Programs use `from dragoman import App`."""
