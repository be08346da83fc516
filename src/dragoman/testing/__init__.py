"""Tools for users' own tests: a broker in the test's process and its pytest fixture, a disk that fails on demand, the checks of a journal."""
