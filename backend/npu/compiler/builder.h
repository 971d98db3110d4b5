// Makes tile programs: arrays, buffers and operations, with descriptors and vector programs that are
// kept once.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"

#include "backend/npu/compiler/tile_ir.h"
#include "backend/npu/compiler/view.h"
#include "backend/npu/sim/config.h"

namespace lazuli::npu {

// A loop nest that an operand walks: strides in elements of `elem` bytes.
struct Walked {
  Place place;  // where the first element is: `low` and `high` are not looked at
  Dims strides;
};

class TileBuilder {
 public:
  TileBuilder(const Config& config, TileProgram& program) : config_(config), program_(program) {}
  const Config& config() const { return config_; }
  TileProgram& program() { return program_; }
  const TileProgram& program() const { return program_; }

  int AddArray(std::string name, SymbolKind kind, Type type, absl::Span<const int64_t> dims);
  // A constant with these bytes; equal ones are one array.
  int AddConstant(Type type, absl::Span<const int64_t> dims, absl::Span<const std::byte> bytes);
  int AddTemporary(Type type, absl::Span<const int64_t> dims);
  int AddBuffer(std::string_view name, int64_t bytes);
  int AddRows(std::string_view name, int64_t rows);
  // Operations from now on come from this HLO instruction (a place in the program's origins).
  void SetOrigin(const hlo::Instruction& instruction);
  void SetOrigin(int origin) { origin_ = origin; }
  int origin() const { return origin_; }

  // Operations from now on work on another block.
  void NextStage() { ++stage_; }

  static Place Spm(int buffer, int64_t offset = 0) { return {Space::kSpm, buffer, offset, 0, 0}; }
  static Place Dram(const View& view, int64_t element);

  // Scalar code. Registers 1 to kScalarRegisters; `value` is a number.
  void Scalar(Op op, int to, int from, int64_t value);
  void AddRegisters(int to, int a, int b);
  int NewLabel() { return labels_++; }
  void Label(int label);                          // everything is idle
  void Branch(Op op, int ra, int rb, int label);  // likewise
  void Barrier();                                 // waits until everything is idle

  // Copies elements; as many instructions as the nest needs. Which queue: Load takes turns unless
  // it is told one.
  void Load(Place to, absl::Span<const int64_t> to_strides, Place from,
            absl::Span<const int64_t> from_strides, absl::Span<const int64_t> dims, int elem,
            int queue = -1);
  void Store(Place to, absl::Span<const int64_t> to_strides, Place from,
             absl::Span<const int64_t> from_strides, absl::Span<const int64_t> dims, int elem);
  // dma.gat or dma.sct: `rows` rows of `row` elements in the scratchpad, each at its distance in elements from `far`, as the table
  // at `table` says. Of a row's elements up to four levels with these strides.
  void Indexed(bool gather, Place near, Place far, Place table, int64_t rows, int64_t row,
               absl::Span<const int64_t> dims, absl::Span<const int64_t> near_strides,
               absl::Span<const int64_t> far_strides, int elem, uint32_t joining, Type type);

  // Copies from now on add this register to the place in DRAM; 0: none. Such a copy may touch all of its array.
  void SetFarRegister(int number) { far_register_ = number; }

  // Bytes of `value` into elements that follow each other.
  void Fill(Place to, int64_t elements, int elem, int64_t value, int queue = 0);

  // The same of a nest of at most five levels.
  void FillBox(Place to, absl::Span<const int64_t> strides, absl::Span<const int64_t> dims,
               int elem, int64_t value, int queue = 0);

  // A vector program over a nest of at most four levels. `levels`: those that are reduced by
  // `reduction`, -1: none.
  struct Stream {
    Walked at;
    Type type;
  };
  void Vector(const std::vector<uint32_t>& words, absl::Span<const int64_t> dims,
              absl::Span<const Stream> inputs, const Stream& result, int reduction = -1,
              uint32_t levels = 0);

  // --- between devices, which run the same program: a place of one is the same place of another
  // Elements to the scratchpad of another device, whose semaphore is given a token.
  void Put(int device, Place to, Place from, int64_t elements, int elem, int semaphore);
  // Waits for so many of these tokens; `brought` has what came with them.
  void Arrive(int semaphore, int count, Place brought, int64_t bytes);
  // Nothing, but that the bytes are this program's from here on: others may write there behind it.
  void Reserve(Place place, int64_t bytes);
  // The number of this device, into a register.
  void LoadDevice(int to);

  int AddDescriptor(const Descriptor& descriptor);
  void Add(TileOp op);

  // `place` with what a nest touches from there on.
  Place Reaching(Place place, absl::Span<const int64_t> dims, absl::Span<const int64_t> strides,
                 int64_t elem) const;

 private:
  void Copy(Op op, Queue queue, Place to, absl::Span<const int64_t> to_strides, Place from,
            absl::Span<const int64_t> from_strides, absl::Span<const int64_t> dims, int elem);
  int AddVectorDescriptor(absl::Span<const int64_t> dims, absl::Span<const Stream> inputs,
                          const Stream& result);

  const Config& config_;
  TileProgram& program_;
  std::map<std::string, int> descriptors_, vectors_, constants_;
  std::map<const hlo::Instruction*, int> origins_;
  int origin_ = 0, stage_ = 0, next_load_ = 0, labels_ = 0, far_register_ = 0;
};

// Levels of a vector program's nest.
inline constexpr std::size_t kNestLevels = 4;

// Merges neighbouring levels that every one of `strides` walks as one, and drops levels of 1.
void CollapseLevels(Dims& dims, absl::Span<Dims* const> strides);

}  // namespace lazuli::npu
