"""jaxlib reads the HloModuleProto that lazuli writes, and lazuli reads jaxlib's: the modules are the same either way.

usage: proto_test.py LAZULI_OPT MODULE.hlo...
"""
import pathlib
import re
import subprocess
import sys
import tempfile

from jaxlib import _hlo

OPT = sys.argv[1]


def plain(module):
    """jaxlib's text of a module without what names the origin of its instructions."""
    options = _hlo.HloPrintOptions()
    options.print_metadata = False
    options.print_large_constants = True
    text = module.to_string(options)
    return text[:text.find("\nFileNames")] + text[text.find("\n\n%"):] if "\nFileNames" in text else text


def opt(*arguments):
    result = subprocess.run([OPT, "--pipeline=none", *map(str, arguments)], capture_output=True, text=True, check=False)
    if result.returncode:
        raise ValueError(result.stderr)
    return result.stdout


def compare(path, folder):
    """None, or what differs."""
    theirs = _hlo.hlo_module_from_text(path.read_text())
    (folder / "theirs.pb").write_bytes(theirs.as_serialized_hlo_module_proto())
    if opt(folder / "theirs.pb") != opt(path):
        (folder / "a").write_text(opt(path))
        (folder / "b").write_text(opt(folder / "theirs.pb"))
        return "read otherwise than the text:\n" + subprocess.run(
            ["diff", folder / "a", folder / "b"], capture_output=True, text=True, check=False).stdout[:2000]
    opt(path, "--emit=proto", "-o", folder / "ours.pb")
    ours = _hlo.HloModule.from_serialized_hlo_module_proto((folder / "ours.pb").read_bytes())
    again = _hlo.hlo_module_from_text(opt(path))
    strip = lambda text: re.sub(r"(?m)^HloModule .*$", "", text)  # the header's counts are no part of the message
    if strip(plain(ours)) != strip(plain(again)):
        (folder / "a").write_text(plain(again))
        (folder / "b").write_text(plain(ours))
        return "written otherwise than the text:\n" + subprocess.run(
            ["diff", folder / "a", folder / "b"], capture_output=True, text=True, check=False).stdout[:2000]
    return None


def main():
    failures = 0
    for name in sys.argv[2:]:
        with tempfile.TemporaryDirectory() as folder:
            try:
                complaint = compare(pathlib.Path(name), pathlib.Path(folder))
            except (ValueError, RuntimeError) as error:
                complaint = str(error)
        if complaint:
            failures += 1
            print(f"{name}: {complaint}")
    print(f"{len(sys.argv) - 2} modules, {failures} failures")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
