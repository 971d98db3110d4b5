#include "python/src/caller.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include <Python.h>

#include "ir/graph/stack.h"

namespace lazuli::python {
namespace {

// Direct-mapped. An entry owns its code object, so that no other code gets the same address.
struct Entry {
  PyCodeObject* code = nullptr;
  int position = 0;
  bool internal = false;  // a frame of the package: its caller is meant
  ir::SiteId site = ir::kNoSite;
};
constexpr std::size_t kEntries = 4096;
std::array<Entry, kEntries> entries;

// Never destroyed: threads may outlive the interpreter.
std::vector<std::string>& OwnFiles() {
  static auto* files = new std::vector<std::string>;
  return *files;
}

std::string_view Text(PyObject* text) {
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(text, &size);
  if (data != nullptr) return {data, static_cast<std::size_t>(size)};
  PyErr_Clear();  // a name that is no UTF-8
  return "?";
}

const Entry& Lookup(PyCodeObject* code, int position) {
  const auto address = reinterpret_cast<std::uintptr_t>(code);
  const std::size_t hash = (address >> 5) + static_cast<std::size_t>(position) * 0x9e3779b1u;
  Entry& entry = entries[(hash ^ (hash >> 12)) % kEntries];
  if (entry.code == code && entry.position == position) return entry;
  Py_INCREF(code);
  PyCodeObject* old = std::exchange(entry.code, code);
  const std::string_view file = Text(code->co_filename);
  entry.position = position;
  entry.internal = std::any_of(OwnFiles().begin(), OwnFiles().end(),
                               [&](const std::string& own) { return file.starts_with(own); });
  const int line = PyCode_Addr2Line(code, position);
  entry.site = ir::InternSiteCopy(file, Text(code->co_qualname),
                                  static_cast<std::uint32_t>(line > 0 ? line : 0));
  Py_XDECREF(old);
  return entry;
}

}  // namespace

void SetOwnFiles(std::vector<std::string> beginnings) { OwnFiles() = std::move(beginnings); }

ir::SiteId CallerSite() {
  PyFrameObject* frame = PyEval_GetFrame();
  if (frame == nullptr) return ir::kNoSite;  // a thread of ours that calls no Python
  Py_INCREF(frame);
  const bool whole = ir::KeepsStacks();
  ir::SiteId site = ir::kNoSite;
  bool found = false;  // the site is the user's, not the outermost frame of the package
  std::array<ir::FrameWord, ir::kMostFrames> callers;
  std::size_t count = 0;
  while (frame != nullptr) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    const Entry& entry = Lookup(code, PyFrame_GetLasti(frame));
    Py_DECREF(code);
    if (!found)
      site = entry.site;
    else if (!entry.internal)
      callers[count++] = entry.site;
    found = found || !entry.internal;
    const bool more = found ? whole && count < callers.size() : true;
    PyFrameObject* back = more ? PyFrame_GetBack(frame) : nullptr;
    Py_DECREF(frame);
    frame = back;
  }
  return count == 0
             ? site
             : ir::WithStack(site, ir::InternStack(absl::MakeConstSpan(callers).first(count)));
}

}  // namespace lazuli::python
