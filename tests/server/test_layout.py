"""A server whose class layouts differ from the headers used to build the plugin, although its
version is the same. The plugin refuses this server and names the difference."""

import re
import shutil
import subprocess

from cheetah_tools import build
from cheetah_tools.paths import BUILD, HEADERS, PROJECT

# The class named in the message -> the header, a pattern of the line to change, the planted text.
PLANTED = {
    "its class THD": ("sql_class.h", "  MDL_context mdl_context;", "ulonglong planted;"),
    "the functions of its class handler": ("handler.h", "  virtual ~handler",
                                           "virtual void planted() {}"),
    "the functions of its class Field": ("field.h", "  virtual ~Field",
                                         "virtual void planted() {}"),
    "its structure handlerton": ("handler.h", r"struct handlerton[^;{]*\{", "char planted[64];"),
    "the size of its session variables": ("sql_class.h", r"typedef struct system_variables\s*\{",
                                          "char planted[64];"),
}


def test_another_layout_is_refused(new_server, request, tmp_path):
    wanted = list(PLANTED)[:None if request.config.getoption("--large") else 1]
    for number, difference in enumerate(wanted):
        server = new_server({"cheetah": "ON"},
                            plugin=plugin_with(tmp_path / str(number), *PLANTED[difference]))
        server.start()
        assert not server.has_engine("CHEETAH")
        assert f"{difference} differs" in server.log.read_text()
        assert not (server.data / "#cheetah").exists(), "nothing was opened"
        server.stop()


def plugin_with(folder, header: str, line: str, planted: str):
    for name in ("include", "sql"):
        shutil.copytree(HEADERS / name, folder / name)
    place = folder / "sql" / header
    text, found = re.subn(rf"(?m)^{line}",
                          (rf"{planted}\n\g<0>" if line[0] == " " else rf"\g<0>{planted}"),
                          place.read_text(), count=1)
    assert found, f"{header} has no such line: {line}"
    place.write_text(text)
    moved = {str(HEADERS / name): str(folder / name) for name in ("include", "sql")}
    flags = [moved.get(word, word) for word in build.include_flags()]
    unit, plugin = folder / "layout.o", folder / "ha_cheetah.so"
    source = PROJECT / "plugin/layout/layout.cc"
    subprocess.run(["g++", *build.FLAGS, *flags, "-c", str(source), "-o", str(unit)], check=True)
    names = {file.stem for file in (PROJECT / "plugin").rglob("*.cc")} - {source.stem}
    objects = [unit, *(BUILD / f"{name}.o" for name in sorted(names))]
    library = build.TARGET / "release/libcheetah_ffi.a"
    subprocess.run(build.link_words(objects, library, plugin), check=True)
    return plugin
