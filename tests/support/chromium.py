"""Pages in headless Chromium: what they look like to a script, and what the console says."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


def need_chromium():
    """Ends the test as skipped, with the reason, if there is none."""
    if CHROMIUM is None:
        print("skipped: there is no chromium to look at pages with (apt-get install chromium)")
        sys.exit(77)


def render(page):
    """The page's DOM as text after its scripts ran, and the lines of the console. Nothing reaches a network."""
    with tempfile.TemporaryDirectory() as profile:
        result = subprocess.run(
            [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom",
             "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={profile}", "--window-size=1200,900",
             pathlib.Path(page).resolve().as_uri()],
            capture_output=True, text=True, timeout=100, check=False)
    console = re.findall(r":CONSOLE[^\]]*\] (.*)", result.stderr)
    return result.stdout, console
