"""Public headers, from their templates."""

from functions.cpp import (
    comment, definition_declaration, function_declaration, function_layer, in_place_declaration, layer_class, method_declaration)
from functions.libtorch import (
    in_place_function, out_function, prefixed, torch_function_options, torch_layer, torch_loss, torch_loss_options, torch_row_options, with_tensor_options)


def header(template, families, sections=()):
    """A template with its lines that stand for rows replaced."""
    by_name = {family.name: family for family in families}
    rows = [row for family in families for row in family.rows]
    lines = []
    for line in template.splitlines():
        word, *arguments = line.strip()[1:].split() if line.strip().startswith("@") else [""]
        if word == "functions":
            sections_of = [s for name in arguments for s in by_name[name].sections]
            for section in [s for s in sections_of if not all(row.only_method for row in s.rows)]:
                if section.title:
                    lines.append(comment("--- " + section.title))
                lines += [function_declaration(row) for row in section.rows if not row.only_method]
                lines.append("")
            lines.pop()
        elif word == "using":
            lines += sorted(f"using {row.cpp_name};" for row in rows if arguments[0] in row.forms)
        elif word == "names":
            lines += sorted({f"using {row.cpp_name};" for row in rows if not row.namespace and not row.only_method})
        elif word == "methods":
            lines += [method_declaration(row) for row in rows if "method" in row.forms]
        elif word == "inplace":
            lines += [in_place_declaration(row) for row in rows if "inplace" in row.forms]
        elif word == "inplace_functions":
            lines += [in_place_function(row) for row in rows if "inplace" in row.forms]
        elif word == "out_functions":
            lines += [line for row in rows for line in out_function(row)]
        elif word == "layer":
            lines += next(layer_class(layer) for section in sections for layer in section.rows if layer.name == arguments[0])
        elif word == "function_layers":
            lines += [line for section in sections for layer in section.rows if layer.function for line in function_layer(layer)]
        elif word == "torch_layers":
            lines += [line for section in sections for layer in section.rows for line in torch_layer(layer)]
        elif word == "torch_losses":
            lines += [line for row in rows for line in torch_loss(row)]
        elif word == "torch_function_options":
            lines += [line for section in sections for layer in section.rows for line in torch_function_options(layer, rows)]
            lines += [line for row in rows for line in torch_loss_options(row) + torch_row_options(row)]
        elif word == "prefixed":
            lines += [prefixed(row) for row in rows if row.namespace in arguments]
        elif word == "tensor_options":
            lines += [line for row in rows for line in with_tensor_options(row)]
        elif word == "definitions":
            lines += [definition_declaration(row) for row in rows if row.is_defined]
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"
