"""Make the environment of the project: .venv with the locked dependencies and the package itself.

    python scripts/install.py [--installer uv|pip]     what is missing, nothing if all is there
    python scripts/install.py peers                    .venv-bench with the libraries of make bench
    python scripts/install.py try                      .venv-try with the tables of make try
    python scripts/install.py notebook                 .venv-notebook with JupyterLab
    python scripts/install.py docs                     .venv-docs with Sphinx, for make docs
    python scripts/install.py dist                     .venv-dist with what make dist checks with
    python scripts/install.py browser                  Debian's Chromium, in CI where there is none
    python scripts/install.py lowest                   .venv-lowest with the lowest versions allowed
    python scripts/install.py lock [--upgrade ...]     requirements.lock anew, with options for uv

Needs nothing but Python and pip.  Pythons that are too old for the package read it too, to be told
so: it has no type hints and no syntax newer than 3.6.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST, NEWEST = (3, 11), (3, 14)
ROOT = Path(__file__).resolve().parents[1]
PYTHON = os.environ.get("PYTHON", sys.executable)
"""How the user calls this Python, for messages."""

LOCK = "requirements.lock"
INSTALLED = (LOCK, "pyproject.toml", "src/marginfold/_version.py")
"""An environment holds what these files said when it was made ready."""

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
"""What a browser for the tests of the explorer's page is called."""

SETTINGS = {
    "UV_SYSTEM_CERTS": "1",  # uv does not read pip's certificates
    "UV_NATIVE_TLS": "1",
    "UV_PYTHON_DOWNLOADS": "never",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_USER": "0",
}


def main(arguments):
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    tasks = ("install", "peers", "try", "notebook", "docs", "dist", "browser", "lowest", "lock")
    parser.add_argument("task", nargs="?", choices=tasks, default="install")
    parser.add_argument("--installer", choices=("uv", "pip"), default="uv")
    options, others = parser.parse_known_args(arguments)
    if others and options.task != "lock":
        parser.error("unknown: " + " ".join(others))
    check_python(sys.version_info[:2], PYTHON)
    os.environ.update(SETTINGS)
    os.chdir(ROOT)
    if options.task == "peers":
        make_beside(Path(".venv-bench"), Path("benchmarks", "peers.txt"))
    elif options.task == "try":
        make_beside(Path(".venv-try"), Path("scripts", "try.txt"))
    elif options.task == "notebook":
        make_beside(Path(".venv-notebook"), Path("scripts", "notebook.txt"))
    elif options.task == "docs":
        make_docs(Path(".venv-docs"))
    elif options.task == "dist":
        make_beside(Path(".venv-dist"), Path("scripts", "dist.txt"))
    elif options.task == "browser":
        install_browser()
    elif options.task == "lowest":
        make_lowest(Path(".venv-lowest"))
    elif options.task == "lock":
        make_lock(others)
    else:
        install(options.installer)


def check_python(version, name):
    """End with a message if the package does not run on this version of Python."""
    if not OLDEST <= version <= NEWEST:
        sys.exit(
            f"marginfold needs Python 3.11 to 3.14, but {name} is {version[0]}.{version[1]}; "
            "try: make PYTHON=python3.12 install"
        )


# The steps ---------------------------------------------------------------------------------------


def install(installer, venv=Path(".venv")):
    """Bring an environment to what the lock says; a ready one is left as it is."""
    state = state_of(venv, ROOT)
    if state == "ready":
        return
    if state == "absent":
        make_environment(venv)
    if not (installer == "uv" and may_use_uv(pip_settings(venv)) and install_with_uv(venv)):
        print("installing with pip, which takes a few minutes", flush=True)
        install_with_pip(venv)
    (venv / "holds").write_text(digest(ROOT), encoding="utf-8")


def state_of(venv, root):
    """Return "ready", "outdated", or "absent" (also if it was moved or its Python is gone)."""
    if not os.access(str(python_of(venv)), os.X_OK) or not was_made_here(venv):
        return "absent"
    return "ready" if read(venv / "holds") == digest(root) else "outdated"


def make_environment(venv):
    """Make an empty environment with pip.

    A Python without ensurepip (Debian without python3-venv) gets it from virtualenv: the one that
    is there, or one that pip puts aside for this purpose.
    """
    aside = Path("build", "virtualenv")
    beside = dict(os.environ, PYTHONPATH=str(aside))
    get_virtualenv = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(aside)]
    for attempt in (
        lambda: succeeds([sys.executable, "-m", "venv", str(venv)], quiet=True),
        lambda: succeeds([sys.executable, "-m", "virtualenv", "-q", str(venv)], quiet=True),
        lambda: (
            succeeds([*get_virtualenv, "virtualenv"])
            and succeeds([sys.executable, "-m", "virtualenv", "-q", str(venv)], env=beside)
        ),
    ):
        shutil.rmtree(str(venv), ignore_errors=True)
        if attempt():
            return
    shutil.rmtree(str(venv), ignore_errors=True)
    sys.exit(
        f"cannot make {venv}: neither '{PYTHON} -m venv' nor virtualenv works; "
        "install python3-venv (or free disk space)"
    )


def install_with_uv(venv):
    """Install by uv, which itself comes from the lock with its hashes; return whether it worked."""
    python, uv = str(python_of(venv)), str(program_of(venv, "uv"))
    wanted = venv / "uv.txt"
    wanted.write_text(locked("uv", read(ROOT / LOCK)), encoding="utf-8")
    pip = [python, "-m", "pip", "install", "--quiet", "--require-hashes", "--no-deps"]
    quiet = ["--quiet", "--python", python]
    if not succeeds([*pip, "-r", str(wanted)]):
        return False
    indexed = with_index(os.environ, pip_settings(venv))
    return succeeds(
        [uv, "pip", "sync", *quiet, "--require-hashes", LOCK], env=indexed
    ) and succeeds(
        [uv, "pip", "install", *quiet, "--no-deps", "--no-build-isolation", "-e", "."], env=indexed
    )


def install_with_pip(venv):
    """Install by pip, or end with its messages."""
    pip = [str(python_of(venv)), "-m", "pip", "install", "--quiet"]
    require([*pip, "--require-hashes", "-r", LOCK])
    require([*pip, "--no-deps", "--no-build-isolation", "-e", "."])


def make_beside(venv, wanted):
    """Make an environment that sees the packages of the first, with those that a file lists.

    Those that cannot be installed here are left out.
    """
    if read(venv / "holds") == read(wanted):
        return
    make_environment(venv)
    show_first(venv)
    for package in read(wanted).split():
        if not succeeds([str(python_of(venv)), "-m", "pip", "install", "--quiet", package]):
            print(f"{package} is left out", file=sys.stderr)
    (venv / "holds").write_text(read(wanted), encoding="utf-8")


def make_docs(venv):
    """Make an environment that sees the packages of the first, with the group docs."""
    if state_of(venv, ROOT) == "ready":
        return
    uv = str(program_of(Path(".venv"), "uv"))
    env = with_index(os.environ, pip_settings(Path(".venv")))
    make_environment(venv)
    show_first(venv)
    python = ["--quiet", "--python", str(python_of(venv))]
    require([uv, "pip", "install", *python, "--group", "docs"], env)
    (venv / "holds").write_text(digest(ROOT), encoding="utf-8")


def show_first(venv):
    """Let an environment see the packages of the first one, after its own."""
    first = f"{packages_of(Path('.venv'))}\n{ROOT / 'src'}\n"
    Path(packages_of(venv), "first.pth").write_text(first, encoding="utf-8")


def install_browser():
    """Install Debian's Chromium where CI runs as root without one; elsewhere tests say what to do.

    Tests of the explorer's page fail in CI without a browser, and are skipped on other machines.
    """
    wanted = os.environ.get("CHROMIUM")
    found = any(map(shutil.which, [wanted] if wanted else BROWSERS))
    if found or os.environ.get("CI") != "true" or os.geteuid() != 0:
        return
    apt = ["apt-get", "-qq", "-y"]
    if not succeeds([*apt, "update"]) or not succeeds(
        [*apt, "install", "--no-install-recommends", "chromium"]
    ):
        print("no Chromium, and apt-get cannot install it: install one", file=sys.stderr)


def make_lowest(venv):
    """Make an environment of the lowest versions that pyproject.toml allows, on the oldest Python.

    What the packages named there need in turn is as new as they let it be.
    """
    if state_of(venv, ROOT) == "ready":
        return
    uv, wanted = str(program_of(Path(".venv"), "uv")), venv / "lowest.txt"
    env = with_index(os.environ, pip_settings(Path(".venv")))
    groups = ["--all-extras", "--group", "test", "--group", "build"]
    lowest = ["--resolution", "lowest-direct", "--output-file", str(wanted)]
    python = ["--quiet", "--python", str(python_of(venv))]
    require([uv, "venv", "--quiet", "--clear", "--python", oldest_python(), str(venv)], env)
    require([uv, "pip", "compile", *python, "pyproject.toml", *groups, *lowest], env)
    require([uv, "pip", "install", *python, "-r", str(wanted)], env)
    require([uv, "pip", "install", *python, "--no-deps", "--no-build-isolation", "-e", "."], env)
    (venv / "holds").write_text(digest(ROOT), encoding="utf-8")


def make_lock(options, venv=Path(".venv")):
    """Write the lock, without the address of any index."""
    if state_of(venv, ROOT) == "absent":
        make_environment(venv)
    uv = str(program_of(venv, "uv"))
    if not os.access(uv, os.X_OK):
        require([str(python_of(venv)), "-m", "pip", "install", "--quiet", "uv"])
    groups = ["--all-extras", "--group", "test", "--group", "check", "--group", "build"]
    every = ["--universal", "--python-version", "3.11", "--generate-hashes"]
    plain = ["--no-header", "--no-annotate", "--output-file", LOCK]
    command = [uv, "pip", "compile", "--quiet", "pyproject.toml", *groups, *every, *plain]
    require([*command, *options], env=with_index(os.environ, pip_settings(venv)))
    if "://" in read(ROOT / LOCK):
        sys.exit(f"{LOCK} holds an address; remove it from the configuration")


# Decisions ---------------------------------------------------------------------------------------


def was_made_here(venv):
    """Return whether an environment, which knows the folder it was made in, is still there."""
    here = re.escape(str(Path(os.path.abspath(str(venv)))))
    line = f"VIRTUAL_ENV=['\"]?{here}['\"]?$"
    return re.search(line, read(venv / "bin" / "activate"), re.MULTILINE) is not None


def oldest_python():
    """Return the oldest Python on PATH on which the package runs."""
    names = [f"python3.{minor}" for minor in range(OLDEST[1], NEWEST[1] + 1)]
    return next(filter(None, map(shutil.which, names)), sys.executable)


def may_use_uv(settings):
    """Return whether uv may look for an index: not where pip is told to use none at all."""
    values = [setting(settings, section, "no-index") for section in (":env:", "install", "global")]
    return not any(re.fullmatch("1|true|yes|on", value, re.IGNORECASE) for value in values)


def with_index(environment, settings):
    """Return the environment in which uv asks the index that pip is configured to ask."""
    if environment.get("UV_DEFAULT_INDEX") or environment.get("UV_INDEX_URL"):
        return dict(environment)
    found = [setting(settings, section, "index-url") for section in (":env:", "install", "global")]
    index = next(filter(None, found), None)
    return dict(environment, UV_DEFAULT_INDEX=index) if index else dict(environment)


def setting(settings, section, name):
    """Return a value in the output of `pip config list`, "" if there is none."""
    found = re.search(f"^{section}\\.{name}='(.*)'$", settings, re.MULTILINE)
    return found.group(1) if found else ""


def locked(name, lock):
    """Return the lines of one package in the lock, with its hashes."""
    found = re.search(f"^{name}==(?:.*\\\\\n)*.*\n", lock, re.MULTILINE)
    return found.group(0) if found else ""


def digest(root):
    """Return one number for the contents of the files that decide what is installed."""
    whole = hashlib.sha256()
    for name in INSTALLED:
        whole.update((root / name).read_bytes())
    return whole.hexdigest()


# Files and processes -----------------------------------------------------------------------------


def pip_settings(venv):
    """Return what holds for pip after all files and variables (`pip config get` reads one file)."""
    return output_of(venv, "-m", "pip", "config", "list")


def output_of(venv, *arguments):
    """Return what the Python of an environment prints."""
    command = [str(python_of(venv)), *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout


def python_of(venv):
    return program_of(venv, "python")


def program_of(venv, name):
    return venv / "bin" / name


def packages_of(venv):
    """Return the folder of the packages in an environment."""
    return output_of(venv, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()


def read(path):
    """Return the text of a file, "" if there is none."""
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def succeeds(command, env=None, quiet=False):
    """Run a command and return whether it ended well."""
    stream = subprocess.DEVNULL if quiet else None
    try:
        return subprocess.run(command, env=env, stdout=stream, stderr=stream).returncode == 0
    except OSError:  # there is no such program
        return False


def require(command, env=None):
    """Run a command that has to succeed; it has said itself what is wrong."""
    if not succeeds(command, env):
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
