// Runs what JAX compiled: loads the HLO of a training step, runs it here, and compares with the
// definition of HLO.
//
//   run_jax_dump [FILE]   HLO text, or a serialised HloModuleProto if its name ends in .pb
//
// The file came from jax.jit(step).lower(...).compiler_ir('hlo').as_hlo_text().
#include <algorithm>
#include <cmath>
#include <iostream>

#include <lazuli/hlo.h>
#include <lazuli/lazuli.h>

namespace lz = lazuli;

namespace {

// Values for a parameter: numbers in [0, 1), or whole numbers below ten.
lz::Tensor Argument(const lz::HloShape& shape) {
  const lz::Tensor unit = lz::rand(shape.dims);
  return shape.dtype == lz::kFloat32 ? unit : (unit * 10).to(shape.dtype);
}

double LargestDifference(const lz::Tensor& a, const lz::Tensor& b) {
  const auto x = a.to(lz::kFloat64).to_vector<double>(), y = b.to(lz::kFloat64).to_vector<double>();
  double largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    largest = std::max(largest, std::abs(x[i] - y[i]) / (1 + std::abs(x[i])));
  return largest;
}

}  // namespace

int main(int argc, char** argv) try {
  lz::HloModule module = lz::HloModule::load(argc > 1 ? argv[1] : "examples/jit_mlp.hlo");
  std::cout << module.name() << ": " << module.instructions().size() << " instructions, "
            << module.parameters().size() << " parameters\n";

  std::vector<lz::Tensor> arguments;
  for (const lz::HloShape& shape : module.parameters()) arguments.push_back(Argument(shape));

  // Compiled once, run as often as you like; the results are tensors like any other.
  const lz::HloExecutable program = module.compile(lz::Device("cpu"));
  const std::vector<lz::Tensor> results = program.run(arguments);
  std::cout << "first result: " << results[0] << ", " << program.stats().kernels << " kernels\n";

  // The evaluator says what HLO means; it takes its time.
  const std::vector<lz::Tensor> expected = module.evaluate(arguments);
  double largest = 0;
  for (std::size_t i = 0; i < results.size(); ++i)
    largest = std::max(largest, LargestDifference(expected[i], results[i]));
  std::cout << "agrees with the definition: " << (largest < 1e-4 ? "yes" : "no") << "\n";

  // A pass of your own: x / y becomes x * y^(-y/y).
  lz::register_pass(
      "no_division", "Division becomes a product with the inverse.", [](lz::HloModule& m) {
        return m.rewrite([](const lz::HloInstruction& i) -> std::string {
          if (i.opcode != "divide") return "";
          return i.shape + " multiply(%" + i.operands[0] + ", power(%" + i.operands[1] +
                 ", negate(divide(%" + i.operands[1] + ", %" + i.operands[1] + "))))";
        });
      });
  std::cout << "no_division changed it: " << (module.run_passes({"no_division"}) ? "yes" : "no")
            << "\n";

  // The binary form says the same.
  std::cout << "reads back: "
            << (lz::HloModule::from_proto(module.to_proto()) == module ? "yes" : "no") << "\n";
  return largest < 1e-4 ? 0 : 1;
} catch (const lz::Error& error) {
  std::cerr << "run_jax_dump: " << error.what() << "\n";
  return 1;
}
