"""The script that makes the environment: its decisions, also where the usual tools are missing."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import install
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder with the files that decide what is installed."""
    for name in install.INSTALLED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{name} one\n", encoding="utf-8")
    monkeypatch.setattr(install, "ROOT", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pretend_environment(venv, made_in=None, line="VIRTUAL_ENV={}"):
    (venv / "bin").mkdir(parents=True, exist_ok=True)
    python = venv / "bin" / "python"
    python.write_text("#!/bin/sh\n", encoding="utf-8")
    python.chmod(0o755)
    text = "# activate\n" + line.format(made_in or venv) + "\nexport VIRTUAL_ENV\n"
    (venv / "bin" / "activate").write_text(text, encoding="utf-8")


@pytest.fixture
def ran(monkeypatch):
    """The commands that would have been run; all succeed unless `fails` names a word of them."""

    class Commands(list):
        fails = ()

        def succeeds(self, command, env=None, quiet=False):
            self.append((command, env))
            return not any(word in command for word in self.fails)

    commands = Commands()
    monkeypatch.setattr(install, "succeeds", commands.succeeds)
    return commands


# ------------------------------------------------------------------------------- Python's version


@pytest.mark.parametrize("version", [(3, 11), (3, 12), (3, 14)])
def test_supported_pythons_pass(version):
    install.check_python(version, "python3")


@pytest.mark.parametrize("version", [(3, 6), (3, 10), (3, 15), (4, 0)])
def test_other_pythons_are_told_what_to_do(version):
    with pytest.raises(SystemExit) as ended:
        install.check_python(version, "python3")
    number = f"{version[0]}.{version[1]}"
    assert str(ended.value) == (
        f"marginfold needs Python 3.11 to 3.14, but python3 is {number}; "
        "try: make PYTHON=python3.12 install"
    )


def test_old_pythons_can_read_the_script():
    """Else they would end with a syntax error instead of the message."""
    source = (ROOT / "scripts" / "install.py").read_text(encoding="utf-8")
    tree = ast.parse(source, feature_version=(3, 6))
    assert not any(isinstance(node, ast.NamedExpr | ast.AnnAssign) for node in ast.walk(tree))


def test_make_says_that_there_is_no_python():
    done = subprocess.run(
        ["make", "PYTHON=no-such-python", "install"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode != 0
    assert "'no-such-python' is not on PATH; try: make PYTHON=/path/to/python3" in done.stderr


# ------------------------------------------------------------------- when an environment is made


def test_an_environment_is_absent_outdated_or_ready(project):
    venv = project / ".venv"
    assert install.state_of(venv, project) == "absent"
    pretend_environment(venv)
    assert install.state_of(venv, project) == "outdated"
    (venv / "holds").write_text(install.digest(project), encoding="utf-8")
    assert install.state_of(venv, project) == "ready"
    (project / install.LOCK).write_text("numpy==3\n", encoding="utf-8")
    assert install.state_of(venv, project) == "outdated"
    (venv / "bin" / "python").unlink()
    assert install.state_of(venv, project) == "absent"


@pytest.mark.parametrize(
    "line", ["VIRTUAL_ENV={}", 'VIRTUAL_ENV="{}"', "VIRTUAL_ENV='{}'", "    export VIRTUAL_ENV={}"]
)
def test_a_moved_environment_is_noticed(project, line):
    pretend_environment(project / ".venv", line=line)
    assert install.was_made_here(project / ".venv")
    for elsewhere in ("/elsewhere/.venv", f"/copy{project}/.venv", f"{project}/.venv2"):
        pretend_environment(project / ".venv", made_in=elsewhere, line=line)
        assert not install.was_made_here(project / ".venv")


def test_a_real_environment_knows_its_folder(tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "e"], check=True)
    assert install.was_made_here(tmp_path / "e")
    (tmp_path / "e").rename(tmp_path / "f")
    assert not install.was_made_here(tmp_path / "f")


def test_a_ready_environment_is_left_alone(project, ran):
    pretend_environment(project / ".venv")
    (project / ".venv" / "holds").write_text(install.digest(project), encoding="utf-8")
    install.install("uv", project / ".venv")
    assert ran == []


def attempts(ran):
    return [" ".join(command[1:4]) for command, _ in ran]


def test_virtualenv_helps_where_venv_does_not(project, ran):
    install.make_environment(project / ".venv")
    assert attempts(ran) == [f"-m venv {project / '.venv'}"]
    ran.clear()
    ran.fails = ("venv",)
    install.make_environment(project / ".venv")
    assert attempts(ran)[1:] == ["-m virtualenv -q"]


def test_virtualenv_is_put_aside_where_there_is_none(project, monkeypatch):
    """Only the one on PYTHONPATH works."""
    seen = []

    def succeeds(command, env=None, quiet=False):
        seen.append(command)
        return "pip" in command or (env is not None and "virtualenv" in env["PYTHONPATH"])

    monkeypatch.setattr(install, "succeeds", succeeds)
    install.make_environment(project / ".venv")
    assert [command[2] for command in seen] == ["venv", "virtualenv", "pip", "virtualenv"]
    assert seen[2][-2:] == [str(Path("build", "virtualenv")), "virtualenv"]


def test_no_way_to_an_environment_is_said(project, ran):
    ran.fails = ("venv", "virtualenv")
    with pytest.raises(SystemExit, match="install python3-venv"):
        install.make_environment(project / ".venv")


# -------------------------------------------------------------------------------- uv, pip, index


@pytest.mark.parametrize("value", ["1", "true", "Yes", "ON"])
@pytest.mark.parametrize("section", ["global", "install", ":env:"])
def test_uv_is_not_used_where_pip_has_no_index(section, value):
    assert not install.may_use_uv(f"global.timeout='9'\n{section}.no-index='{value}'\n")
    assert install.may_use_uv(f"{section}.no-index='false'\n")
    assert install.may_use_uv("")


def test_uv_asks_the_index_of_pip():
    settings = "global.index-url='https://a'\ninstall.index-url='https://b'\n"
    assert install.with_index({}, settings)["UV_DEFAULT_INDEX"] == "https://b"
    settings += ":env:.index-url='https://c'\n"
    assert install.with_index({}, settings)["UV_DEFAULT_INDEX"] == "https://c"
    assert install.with_index({"A": "1"}, "") == {"A": "1"}
    for own in ({"UV_DEFAULT_INDEX": "https://d"}, {"UV_INDEX_URL": "https://d"}):
        assert install.with_index(own, settings) == own
    assert install.with_index({}, "global.extra-index-url='https://e'\n") == {}


def test_uv_comes_from_the_lock_with_its_hashes():
    lock = (ROOT / install.LOCK).read_text(encoding="utf-8")
    lines = install.locked("uv", lock).splitlines()
    assert lines[0].startswith("uv==")
    assert len(lines) > 1
    assert all("--hash=sha256:" in line for line in lines[1:])
    assert install.locked("no-such-package", lock) == ""


@pytest.fixture
def quiet_pip(monkeypatch):
    monkeypatch.setattr(install, "pip_settings", lambda venv: "")


@pytest.mark.usefixtures("quiet_pip")
def test_uv_and_pip_both_check_hashes(project, ran):
    pretend_environment(project / ".venv")
    (project / install.LOCK).write_text("uv==1 \\\n    --hash=sha256:0\n", encoding="utf-8")
    assert install.install_with_uv(project / ".venv")
    assert ["--require-hashes" in command for command, _ in ran] == [True, True, False]
    assert ran[1][0][1:3] == ["pip", "sync"]
    ran.clear()
    install.install_with_pip(project / ".venv")
    assert ["--require-hashes" in command for command, _ in ran] == [True, False]


@pytest.mark.usefixtures("quiet_pip")
@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_pip_installs_when_asked_or_when_uv_fails(project, ran, installer, capsys):
    pretend_environment(project / ".venv")
    ran.fails = ("sync",)
    install.install(installer, project / ".venv")
    assert "installing with pip" in capsys.readouterr().out
    assert ran[-1][0][-2:] == ["-e", "."]
    assert any("sync" in command for command, _ in ran) == (installer == "uv")
    assert install.state_of(project / ".venv", project) == "ready"


@pytest.mark.usefixtures("quiet_pip")
def test_a_failed_installation_is_not_ready(project, ran):
    pretend_environment(project / ".venv")
    ran.fails = ("install",)
    with pytest.raises(SystemExit):
        install.install("pip", project / ".venv")
    assert install.state_of(project / ".venv", project) == "outdated"


# --------------------------------------------------------------------------------- lowest versions


@pytest.mark.usefixtures("quiet_pip")
def test_the_lowest_versions_come_from_the_bounds_and_are_installed_once(project, ran):
    venv = project / ".venv-lowest"
    pretend_environment(venv)
    install.make_lowest(venv)
    made, resolved, *installed = (command for command, _ in ran)
    assert "--clear" in made
    assert resolved[resolved.index("--resolution") + 1] == "lowest-direct"
    assert str(venv / "lowest.txt") in installed[0]
    assert installed[1][-2:] == ["-e", "."]
    ran.clear()
    install.make_lowest(venv)
    assert ran == []


def test_the_oldest_python_is_the_first_that_is_there(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: name if name >= "python3.13" else None)
    assert install.oldest_python() == "python3.13"
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert install.oldest_python() == sys.executable


def test_a_program_that_is_not_there_does_not_succeed():
    assert not install.succeeds([os.path.join("no", "such", "program")])
    assert install.succeeds([sys.executable, "-c", ""])
    assert not install.succeeds([sys.executable, "-c", "raise SystemExit(3)"])


def test_options_that_mean_nothing_are_refused(capsys):
    with pytest.raises(SystemExit):
        install.main(["install", "--upgrade"])
    assert "--upgrade" in capsys.readouterr().err


# ------------------------------------------------------------------------------- the browser


@pytest.fixture
def bare_machine(monkeypatch):
    """A machine of a CI without a browser, where one is root."""
    monkeypatch.setenv("CI", "true")
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setattr(install.shutil, "which", lambda name: None)
    monkeypatch.setattr(install.os, "geteuid", lambda: 0)


@pytest.mark.usefixtures("bare_machine")
def test_ci_installs_a_browser_where_there_is_none(ran, capsys):
    install.install_browser()
    assert [command[-1] for command, _ in ran] == ["update", "chromium"]
    ran.fails = ("install",)
    install.install_browser()
    assert "no Chromium" in capsys.readouterr().err


@pytest.mark.usefixtures("bare_machine")
@pytest.mark.parametrize("case", ["not CI", "not root", "there is one"])
def test_elsewhere_no_browser_is_installed(ran, monkeypatch, case):
    if case == "not CI":
        monkeypatch.delenv("CI")
    elif case == "not root":
        monkeypatch.setattr(install.os, "geteuid", lambda: 1000)
    else:
        monkeypatch.setattr(install.shutil, "which", lambda name: f"/usr/bin/{name}")
    install.install_browser()
    assert ran == []
