"""The build: plain Python, or with the hot path compiled by mypyc as one unit.

    python setup.py probe     say which of the two this machine gets, and why (needs only the standard library)

The packages named in PACKAGES and the modules in TICK become one extension, so that calls between them are C calls. They are compiled when a
C compiler and Python's headers are there and DRAGOMAN_PURE is not 1. Both builds behave the same.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

SOURCE = Path("src")
PACKAGES = ("limits.py", "model", "wire", "dialects", "core")
# What runs in every tick between a read and the writes it causes; the rest of these packages is plain Python.
TICK = (
    *(f"journal/{name}.py" for name in ("disk", "format", "journal", "segment_store")),
    *(f"journal/writing/{name}.py" for name in ("spare_segment", "unsynced", "writer")),
    *(f"runtime/{name}.py" for name in ("broker", "clock", "committer", "connection", "memory", "upkeep", "watchdog")),
)
PROBE = "#include <Python.h>\nint main(void) { return 0; }\n"


def why_not_compiled() -> str:
    """Return the reason for a pure build, or "" when this machine can compile."""
    if os.environ.get("DRAGOMAN_PURE") == "1":
        return "DRAGOMAN_PURE=1"
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch, "probe.c")
        source.write_text(PROBE)
        includes = [f"-I{sysconfig.get_path(name)}" for name in ("include", "platinclude")]
        command = [*compiler, *includes, "-c", str(source), "-o", str(source.with_suffix(".o"))]
        try:
            tried = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError:
            return f"no C compiler ({compiler[0]}) found"
    if tried.returncode == 0:
        return ""
    return "Python's C headers are missing" if "Python.h" in tried.stderr else f"{compiler[0]} does not compile"


def compiled_modules() -> list[str]:
    """Return the files of the compiled unit. `__init__.py` files only hold docstrings and stay as they are."""
    found: list[Path] = []
    for package in PACKAGES + TICK:
        place = SOURCE / "dragoman" / package
        found += [place] if place.is_file() else sorted(place.rglob("*.py"))
    return [str(path) for path in found if path.name != "__init__.py"]


def extensions() -> list[Any]:
    from mypyc.build import mypycify

    # How strict the types are is the business of `make check`: here the packages imported by the compiled packages are absent.
    flags = ["--config-file=", "--follow-imports=silent", "--ignore-missing-imports", "--cache-dir=build/mypy_cache"]
    return mypycify(
        [*flags, *compiled_modules()],
        group_name="dragoman",
        target_dir="build",
        opt_level=os.environ.get("DRAGOMAN_OPT", "3"),
        debug_level="0",
        multi_file=True,
    )


def remove_leftovers(library: Path) -> None:
    """Drop from the build directory what has no source any more; setuptools would pack it into the wheel."""
    for path in library.rglob("*"):
        if path.suffix not in {".py", ".so"} or path.name.startswith("dragoman__mypyc"):
            continue
        source = SOURCE / path.relative_to(library).with_name(path.name.split(".")[0] + ".py")
        if not source.exists():
            path.unlink()


def is_current(made: Path, source: Path) -> bool:
    """Whether an object file is newer than its C file and every header (mypyc touches only what it changes)."""
    inputs = [source, *source.parent.glob("*.h"), *Path("build").glob("*.h")]
    return made.exists() and made.stat().st_mtime > max(path.stat().st_mtime for path in inputs)


def main() -> None:
    if sys.argv[1:] == ["probe"]:
        reason = why_not_compiled()
        print(f"pure Python, not compiled: {reason}; slower, otherwise the same" if reason else "compiled")
        return

    from setuptools import setup
    from setuptools.command.build_ext import build_ext
    from setuptools.command.build_py import build_py

    class BuildModules(build_py):
        def run(self) -> None:
            remove_leftovers(Path(self.build_lib))
            super().run()

    class BuildOnEveryCore(build_ext):
        """mypyc writes one C file per module; setuptools alone would compile all of them, one after another."""

        def build_extensions(self) -> None:
            compile_serially = self.compiler.compile

            def compile_one(source: str, output_dir: str, options: dict[str, Any]) -> list[str]:
                objects: list[str] = self.compiler.object_filenames([source], output_dir=output_dir)
                if all(is_current(Path(name), Path(source)) for name in objects):
                    return objects
                done: list[str] = compile_serially([source], output_dir=output_dir, **options)
                return done

            def compile_all(sources: list[str], output_dir: str, **options: Any) -> list[str]:
                with ThreadPoolExecutor(os.cpu_count()) as pool:
                    done = pool.map(lambda source: compile_one(source, output_dir, options), sources)
                    return [name for names in done for name in names]

            self.compiler.compile = compile_all
            super().build_extensions()

    # pip runs this file several times for one build (requirements, metadata, wheel); only the last one compiles.
    builds = any(command in sys.argv for command in ("bdist_wheel", "build", "build_ext", "install"))
    compiles = builds and not why_not_compiled() and bool(compiled_modules())
    setup(
        ext_modules=extensions() if compiles else [],
        cmdclass={"build_py": BuildModules, "build_ext": BuildOnEveryCore},
    )


if __name__ == "__main__":
    main()
