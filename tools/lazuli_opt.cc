// lazuli-opt: reads a module, runs passes over it, prints what comes out.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/cpu/compiler.h"
#include "backend/npu/compiler/compile.h"
#include "backend/npu/sim/assembler.h"
#include "backend/runtime/program.h"
#include "ir/hlo/dump/module_dump.h"
#include "ir/hlo/opcode.h"
#include "ir/hlo/proto/proto.h"
#include "ir/hlo/text/printer.h"
#include "ir/hlo/verifier.h"
#include "ir/support/name_list.h"
#include "ir/support/status.h"
#include "ir/support/text_file.h"
#include "lowering/passes/pipelines.h"
#include "lowering/passes/registry.h"
#include "lowering/passes/rules/rules.h"
#include "tools/load_module.h"
#include "tools/tool.h"

namespace lazuli::tools {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace): tools speak the vocabulary of every
                     // stage

constexpr std::string_view kUsage = R"(usage: lazuli-opt FILE [options]
Reads HLO text from FILE (- for standard input), or a serialised HloModuleProto if its name ends in .pb, runs passes
over it and prints the result.

  --passes=a,b          run these passes, in this order
  --pipeline=NAME       simplify: all target-independent passes (the default); cpu: all that the CPU's compiler runs;
                        npu: the simulated NPU's compiler; none: only parse and verify
  --emit=FORM           how to print the result: hlo (the default), proto (a serialised HloModuleProto), dot; or what
                        the CPU makes of it after all its passes: llvm, asm (its kernels), buffers (thunks and memory), fusion
                        (why each kernel is one of its own);
                        with --pipeline=npu npux (the program, for npu-run; the default), asm (the same as text), tiles
                        (the operations on tiles that it is made of), report; NPU_CONFIG and NPU_SET say for which machine
  --verify              with --pipeline=npu: prove bounds, order and tokens of the program that was made
  -o OUT                write it to OUT instead of standard output
  --list-passes         print the names of the passes and what they do
  --list-rules          print the names of the rules of simplify
  --list-opcodes        print the opcodes of HLO
  --help                print this
  --help-env            print the environment variables that it reads

Environment: LAZULI_DUMP_DIR, LAZULI_DISABLE_PASSES, LAZULI_DISABLE_RULES and LAZULI_VERIFY_PASSES work as they do in programs.
)";

struct Options {
  std::string file;
  std::string out;
  std::string pipeline;
  std::vector<std::string> passes;
  bool has_passes = false, verify = false;
  std::string emit;  // empty: the pipeline's default
};

constexpr std::string_view kForms[] = {"hlo", "proto", "dot", "llvm", "asm", "buffers", "fusion"};
constexpr std::string_view kNpuForms[] = {"npux", "asm", "tiles", "report"};
constexpr std::string_view kPipelines[] = {"simplify", "cpu", "npu", "none"};

absl::Status CheckWord(std::string_view option, std::string_view value,
                       absl::Span<const std::string_view> words) {
  if (std::find(words.begin(), words.end(), value) != words.end()) return absl::OkStatus();
  return InvalidArgument(option, "=", value, ": there are ", Join(words, ", "));
}

// Whether the form is what the CPU's compiler makes in the end.
bool IsCompiled(std::string_view form) {
  return form == "llvm" || form == "asm" || form == "buffers" || form == "fusion";
}

absl::StatusOr<Options> ParseOptions(const std::vector<std::string_view>& arguments) {
  Options options;
  std::string value;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "-o") {
      if (++i == arguments.size()) return InvalidArgument("-o needs the name of a file");
      options.out = arguments[i];
    } else if (TakeValue(argument, "--passes", &value)) {
      for (std::string_view name : SplitNames(value)) options.passes.emplace_back(name);
      options.has_passes = true;
    } else if (TakeValue(argument, "--pipeline", &value)) {
      LAZULI_RETURN_IF_ERROR(CheckWord("--pipeline", value, kPipelines));
      options.pipeline = value;
    } else if (TakeValue(argument, "--emit", &value)) {
      options.emit = value;
    } else if (argument == "--verify") {
      options.verify = true;
    } else if (argument.starts_with("-") && argument != "-") {
      return InvalidArgument("unknown option ", argument, "; --help lists them");
    } else if (!options.file.empty()) {
      return InvalidArgument("two files, ", options.file, " and ", argument, "; one is read");
    } else {
      options.file = argument;
    }
  }
  if (options.file.empty()) return InvalidArgument("no file; --help says how to use this");
  if (options.has_passes && !options.pipeline.empty())
    return InvalidArgument("--passes or --pipeline, not both");
  const bool npu = options.pipeline == "npu";
  if (options.verify && !npu) return InvalidArgument("--verify is for --pipeline=npu");
  if (options.emit.empty()) options.emit = npu ? "npux" : "hlo";
  LAZULI_RETURN_IF_ERROR(npu ? CheckWord("--emit", options.emit, kNpuForms)
                             : CheckWord("--emit", options.emit, kForms));
  if (IsCompiled(options.emit) && (options.has_passes || options.pipeline == "none"))
    return InvalidArgument("--emit=", options.emit, " comes after all passes of the CPU");
  return options;
}

// The pipeline that holds the passes asked for, so that dumps, counters and verification are a
// pipeline's.
absl::StatusOr<bool> RunPasses(const Options& options, hlo::Module& module) {
  lowering::PassPipeline pipeline("lazuli-opt");
  if (options.pipeline == "cpu") {
    cpu::AddCpuPipeline(pipeline);
  } else if (!options.has_passes && options.pipeline != "none") {
    lowering::AddSimplificationPipeline(pipeline);
  }
  for (const std::string& name : options.passes) {
    LAZULI_ASSIGN_OR_RETURN(std::unique_ptr<lowering::Pass> pass, lowering::MakePass(name));
    pipeline.Add(std::move(pass));
  }
  return pipeline.Run(module);
}

// What the CPU's compiler makes of the module: its kernels as text, or thunks and buffers.
absl::StatusOr<std::string> CompiledText(const Options& options,
                                         std::unique_ptr<hlo::Module> module) {
  hlo::CompileCapture kernels;
  const hlo::ModuleDump dump(*module, "cpu");
  LAZULI_ASSIGN_OR_RETURN(const backend::ThunkProgram program,
                          cpu::CompileModule(std::move(module), {}));
  if (options.emit == "buffers") return backend::PlanText(program);
  if (options.emit == "fusion") return kernels.Joined("fusion.txt");
  return kernels.Joined(options.emit == "llvm" ? ".ir-with-opt.ll" : ".s");
}

// What the NPU's compiler makes of the module, simplified.
absl::StatusOr<std::string> NpuText(const Options& options, hlo::Module& module) {
  LAZULI_RETURN_IF_ERROR(RunPasses(options, module).status());
  LAZULI_ASSIGN_OR_RETURN(const npu::Config config, npu::ConfigFromEnvironment());
  npu::CompileReport report;
  LAZULI_ASSIGN_OR_RETURN(
      const npu::Program program,
      npu::Compile(module, config, &report, {.keep_tiles = true, .verify = options.verify}));
  if (options.emit == "tiles") return report.tiles;
  if (options.emit == "report") return npu::ReportText(report, program);
  return options.emit == "asm" ? npu::Disassemble(program) : npu::ToFile(program);
}

absl::StatusOr<std::string> Result(const Options& options, std::unique_ptr<hlo::Module> module) {
  if (options.pipeline == "npu") return NpuText(options, *module);
  if (IsCompiled(options.emit)) return CompiledText(options, std::move(module));
  LAZULI_RETURN_IF_ERROR(RunPasses(options, *module).status());
  LAZULI_RETURN_IF_ERROR(hlo::Verify(*module));
  if (options.emit == "proto") return hlo::SerializeModuleProto(*module);
  return options.emit == "dot" ? hlo::ToDot(*module) : hlo::ToString(*module);
}

// Whether the argument asks for a list or for help; prints it.
bool Listed(std::string_view argument) {
  std::string text;
  if (argument == "--help" || argument == "-h") {
    text = kUsage;
  } else if (argument == "--list-passes") {
    const auto line = [&text](std::string_view name, std::string_view doc) {
      constexpr std::size_t kWidth = 25;
      text += Str(name, std::string(kWidth - std::min(name.size(), kWidth - 1), ' '), doc, "\n");
    };
    for (const lowering::PassRow& row : lowering::RegisteredPasses()) line(row.name, row.doc);
    for (const lowering::AddedPass& pass : lowering::AddedPasses()) line(pass.name, pass.doc);
  } else if (argument == "--list-rules") {
    for (const lowering::Rule& rule : lowering::AllRules()) text += Str(rule.name, "\n");
  } else if (argument == "--list-opcodes") {
    for (int i = 0; i < hlo::NumOpcodes(); ++i)
      text += Str(hlo::OpcodeText(static_cast<hlo::Opcode>(i)), "\n");
  } else {
    return false;
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  return true;
}

absl::Status Run(const std::vector<std::string_view>& arguments) {
  cpu::RegisterCpuPasses();
  if (std::any_of(arguments.begin(), arguments.end(), Listed)) return absl::OkStatus();
  LAZULI_ASSIGN_OR_RETURN(const Options options, ParseOptions(arguments));
  LAZULI_ASSIGN_OR_RETURN(std::unique_ptr<hlo::Module> module, LoadModule(options.file));
  LAZULI_ASSIGN_OR_RETURN(const std::string result, Result(options, std::move(module)));
  if (!options.out.empty()) return ir::WriteTextFile(options.out, result);
  std::fwrite(result.data(), 1, result.size(), stdout);
  if (std::fflush(stdout) != 0) return FailedPrecondition("cannot write to standard output");
  return absl::OkStatus();
}

}  // namespace
}  // namespace lazuli::tools

int main(int argc, char** argv) {
  return lazuli::tools::ToolMain("lazuli-opt", lazuli::tools::Run, argc, argv);
}
