"""A PostgreSQL server of the tests' own: in a temporary folder, on a socket in it, as a user without rights."""
import glob
import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile

OPTIONS = "-c listen_addresses= -c fsync=off -c max_connections=40 -c shared_buffers=8MB"


def find(name):
    """A program of the server, which Debian keeps off the PATH."""
    places = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"), reverse=True)
    return places[0] if places else shutil.which(name)


def user():
    """PostgreSQL does not run as root."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
    return None


class Server:
    """Started on entry; `url` is its database. `missing` says why there is none."""

    def __init__(self):
        self.folder, self.missing = None, None
        self.programs = {name: find(name) for name in ("initdb", "pg_ctl", "psql")}
        if not all(self.programs.values()):
            self.missing = "PostgreSQL is not installed: tools/setup test installs it"
        elif user() is None:
            self.missing = "PostgreSQL does not run as root, and there is no other user here"

    def run(self, name, *words):
        done = subprocess.run([self.programs[name], *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, cwd=self.folder, timeout=120, close_fds=True,
                              env={**os.environ, "LC_ALL": "C"}, **user())
        assert done.returncode == 0, done.stdout

    def start(self):
        # A socket's path is short: not in pytest's folder.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tare-pg-"))
        whose = user()
        if whose:
            os.chown(self.folder, whose["user"], whose["group"])
        data = str(self.folder / "data")
        self.run("initdb", "-D", data, "-A", "trust", "-U", "tare", "-E", "UTF8", "--no-locale", "-N")
        self.run("pg_ctl", "-D", data, "-o", f"-k {self.folder} {OPTIONS}", "-l", str(self.folder / "log"), "-w",
                 "start")
        self.url = f"postgresql:///postgres?host={self.folder}&user=tare"
        return self

    def stop(self):
        if not self.folder:
            return
        try:
            self.run("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "-w", "stop")
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None
