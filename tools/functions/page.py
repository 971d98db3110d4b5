"""The page of functions."""

from functions.rows import AUTOCAST, ROWS


def in_table(doc):
    return doc.replace("|", "\\|").replace("\n", "<br>")


def page(families, layer_sections):
    lines = ["# Functions", "",
             "The public functions of C++ (`lazuli/ops.h`, `lazuli/nn.h`) and Python. Written by `./lz docs` from the rows of "
             f"`{ROWS}`; a test keeps it current.", "",
             "A function with the form method can also be called as `x.name(...)`. With the form in place, `x.name_(...)` stores the result in x. "
             "Under autocast, functions with the form `autocast: narrow` convert their floats to the narrow dtype, others to float32 or to the "
             "widest dtype of their arguments."]
    for family in families:
        for section in family.sections:
            lines += ["", f"## {(section.title or family.name).partition(':')[0].partition(';')[0].partition('.')[0].capitalize()}",
                      "", "| function | forms | meaning |", "| --- | --- | --- |"]
            for row in section.rows:
                name = f"{row.namespace}.{row.signature()}" if row.namespace else row.signature()
                shown = [f for f in ("method", "py.method", "inplace") if f in row.forms]
                shown = ["in place" if f == "inplace" else "method of Python" if f == "py.method" else f for f in shown]
                if "c++" in row.forms:
                    shown.append("C++")
                shown += [f"autocast: {word}" for word in AUTOCAST if word in row.settings]
                lines.append(f"| `{name}` | {', '.join(shown)} | {in_table(row.doc)} |")
    if layer_sections:
        lines += ["", "## Layers", "", "| layer | meaning |", "| --- | --- |"]
        lines += [f"| `nn.{layer.signature()}` | {in_table(layer.doc)} |" for s in layer_sections for layer in s.rows]
    return "\n".join(lines) + "\n"
