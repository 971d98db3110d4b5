// Recording: a call of a function as it is, watched, and the recipe that comes of it.
//
// The function runs in the thread's own context, between two syncs: what it computes, writes and draws
// is what it does without a recording. So a recording can be thrown away at any time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"

#include "lazy/execution/recipe.h"
#include "lazy/execution/sync_state.h"
#include "lazy/tensor/site_scope.h"

namespace lazuli::lazy {

class Recording final : public Watch, private RunListener {
 public:
  // Syncs the thread's context. The arguments stay alive until Finish().
  static absl::StatusOr<std::unique_ptr<Recording>> Start(absl::Span<const Tensor> arguments,
                                                          std::vector<uint64_t> modes);
  ~Recording() = default;
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // After the function has returned: syncs, unless the call cannot be replayed. Null: why() says it.
  // `donated`: arguments whose elements the caller gives up: their memory becomes that of results,
  // and who reads them gets an error.
  absl::StatusOr<std::unique_ptr<Recipe>> Finish(absl::Span<const Tensor> results,
                                                 absl::Span<const int32_t> donated);
  bool is_refused() const { return !why_.empty(); }
  const std::string& why() const { return why_; }
  SiteId site() const { return site_; }

  void Touch(const Tensor& tensor) override;
  void Touch(Storage& storage) override;
  void TouchLocked(Storage& storage) override;
  void Draw(const Generator& generator, int64_t numbers, absl::Span<const Value> words) override;
  void NoteGradUse(TensorImpl& tensor) override;
  void NoteGrad(TensorImpl& tensor) override;
  void NoteAlias(TensorImpl& alias) override;
  void NoteChange(TensorImpl& tensor, const char* what) override;
  void NoteSync(const Context& context) override;
  void NoteRead() override;
  void Refuse(std::string why) override { RefuseAt(std::move(why), CurrentSite()); }
  void Numbers(absl::Span<const Value> numbers, uint64_t what) override;
  void Open(std::shared_ptr<HostAction> action) override;
  void Close() override { is_open_ = false; }
  bool has_open_action() const override { return is_open_; }

 private:
  struct PlaceState {  // of a place, when it was touched
    StoragePtr storage;
    DataPtr data;
    NodePtr number;
    uint64_t version;
  };
  struct Owned {  // of an owner, when it was noted
    IntrusivePtr<TensorImpl> impl, grad;
    bool changes = false;
  };
  struct Seen {  // of the run
    std::vector<const Storage*> roots;
    std::vector<DataPtr> replaced;
    std::vector<SiteId> sites;
    std::vector<const Node*> scalars;
    PooledVector<DataPtr> inputs, outputs;
  };

  Recording(absl::Span<const Tensor> arguments, std::vector<uint64_t> modes);
  void Runs(const Context& context, const SyncState& state, const Run& run) override;
  void RefuseAt(std::string why, SiteId site);
  bool IsHere() const { return &Context::Current() == context_.get(); }
  bool IsOld(const Storage& storage) const;
  absl::Status AddArguments();
  std::optional<PlaceState> StateOf(Storage& storage);
  int32_t AddPlace(Storage& storage, Recipe::Place::Kind kind, int32_t index);
  int32_t PlaceOf(const Storage& storage) const;
  int32_t OwnerOf(TensorImpl& tensor);

  void KeepResultBases(absl::Span<const Tensor> results, std::vector<StoragePtr>& kept);
  void Donate(absl::Span<const Tensor> results, absl::Span<const int32_t> donated);
  void TakeDonated();
  bool IsAlias(const TensorImpl& tensor) const { return aliases_.contains(&tensor); }
  void CheckAliases(absl::Span<const Tensor> results);
  void MapData();
  void AddRoots();
  void AddInputs();
  void AddWrites();
  void AddGradients();
  void AddCapturedBases();
  Recipe::Content ContentOf(Storage& storage);
  Recipe::Content ContentOf(const DataPtr& data);
  int32_t AddConstant(const DataPtr& data);
  int32_t AddStorage(const StoragePtr& storage);
  Recipe::TensorRef RefOf(const IntrusivePtr<TensorImpl>& impl);

  const IntrusivePtr<Context> context_;
  const absl::Span<const Tensor> arguments_;
  uint64_t last_old_ = 0;  // number of the last storage of the context that is old
  std::unique_ptr<Recipe> recipe_;
  std::string why_;
  SiteId site_ = ir::kNoSite;
  bool is_open_ = false;
  bool ran_ = false;

  absl::flat_hash_map<const Storage*, int32_t> place_of_;
  std::vector<PlaceState> states_;  // of places
  std::vector<Owned> owned_;        // of owners
  struct NumberOrigin {
    Recipe::Scalar::Kind kind;
    int32_t index, part;
  };
  absl::flat_hash_map<const Node*, NumberOrigin> numbers_;
  std::vector<NodePtr> nodes_;  // that keep the keys of numbers_ alive
  Seen seen_;
  absl::flat_hash_map<const DataHandle*, int32_t> place_with_, output_with_;
  absl::flat_hash_map<const Storage*, int32_t> new_storages_;
  absl::flat_hash_map<const TensorImpl*, int32_t> new_tensors_;
  std::vector<StoragePtr> kept_;  // storages of new_storages_
  std::vector<IntrusivePtr<TensorImpl>> kept_tensors_;
  // Tensors that the function made for old storages, and whether it changed what they are.
  absl::flat_hash_map<const TensorImpl*, bool> aliases_;
  std::vector<IntrusivePtr<TensorImpl>> kept_aliases_;
};

}  // namespace lazuli::lazy
