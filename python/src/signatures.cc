// What inspect.signature() says of functions that pybind11 bound: Python reads it from the text of a function, where it stands
// before a line "--"; pybind11 writes types into it, which Python does not take there.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <pybind11/pybind11.h>

#include "python/src/bindings.h"

namespace lazuli::python {
namespace {

// The parts between commas that stand in no bracket.
std::vector<std::string_view> Parameters(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      if (i > begin) parts.push_back(text.substr(begin, i - begin));
      begin = std::min(i + 2, text.size());
    } else if (std::strchr("([{<", text[i]) != nullptr) {
      ++depth;
    } else if (std::strchr(")]}>", text[i]) != nullptr && text[i - 1] != '-') {
      --depth;
    }
  }
  return parts;
}

// A default as Python may write it there; what is no number, name or text of Python's own is "...".
std::string_view Default(std::string_view text) {
  const bool number = text.find_first_not_of("0123456789.-+e") == std::string_view::npos;
  const bool known = text == "None" || text == "True" || text == "False" || text == "()";
  return number || known || text.starts_with('\'') ? text : "...";
}

// "(self, dims, wait=False)" of "(self: lazuli.Tensor, dims: List[int], wait: bool = False) -> None".
std::string WithoutTypes(std::string_view text) {
  int depth = 0;
  std::size_t end = 0;  // of the closing bracket
  for (; end < text.size(); ++end) {
    depth += text[end] == '(' ? 1 : text[end] == ')' ? -1 : 0;
    if (depth == 0) break;
  }
  text = text.substr(0, end);
  if (!text.empty()) text.remove_prefix(1);
  std::string written =
      "(";  // without "$self": Python drops a first parameter, which pybind11's functions have, anyway
  for (const std::string_view parameter : Parameters(text)) {
    if (written.size() > 1) written += ", ";
    const std::string_view name = parameter.substr(0, parameter.find(':'));
    written.append(name);
    const std::size_t equals = parameter.find(" = ");
    if (equals != std::string_view::npos) {
      written += '=';
      written.append(Default(parameter.substr(equals + 3)));
    }
  }
  return written + ")";
}

}  // namespace

void GiveSignature(PyMethodDef& definition) {
  if (definition.ml_doc == nullptr) return;
  const std::string_view doc = definition.ml_doc;
  const std::string name = definition.ml_name;
  if (!doc.starts_with(name + "(")) return;
  const std::string_view line = doc.substr(name.size(), doc.find('\n') - name.size());
  if (line.find(')') == std::string_view::npos || doc.find("\n--\n\n") != std::string_view::npos)
    return;
  std::string text = name;
  text.append(WithoutTypes(line)).append("\n--\n\n").append(doc);
  std::free(
      const_cast<char*>(definition.ml_doc));  // NOLINT: pybind11's, which frees what stands there
  definition.ml_doc = strdup(text.c_str());
}

}  // namespace lazuli::python
