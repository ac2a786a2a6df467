// SPDX-License-Identifier: Apache-2.0
// checkpoint.h: checkpoints.
#include "core/strategy/checkpoint.hpp"

#include <cinttypes>
#include <memory_resource>
#include <vector>

#include "capi/dataset.hpp"
#include "capi/guard.hpp"
#include "core/checkpoint/file_error.hpp"
#include "core/checkpoint/reader.hpp"
#include "core/strategy/between_runs.hpp"

using namespace dist;
using namespace dist::capi;

namespace {

const Checkpoint& unwrap(const dist_checkpoint* handle) noexcept {
  return *reinterpret_cast<const Checkpoint*>(handle);
}

// The common beginning of saving and loading.
class Request {
 public:
  Request(dist_strategy* strategy, const char* name) noexcept
      : name_(name), strategy_(capi::unwrap(strategy)), variables_(&strategy_.memory()) {}

  Status read(const char* path, dist_variable* const* variables, std::size_t n,
              const dist_checkpoint_options* options) {
    DIST_TRY(strategy_.check_cross_replica(name_));
    DIST_TRY(require(path, name_, "path"));
    DIST_TRY(read_options(options, &options_, "dist_checkpoint_options"));
    DIST_TRY(require_flag(options_.sharded, "dist_checkpoint_options.sharded"));
    DIST_TRY(check_list(variables, n, name_, "variables"));
    variables_.reserve(n);
    for (std::size_t i = 0; i < n; ++i) {
      if (variables[i] == nullptr) return invalid_argument("`%s()`: `variables[%zu]` is `NULL`", name_, i);
      if (options_.names != nullptr && options_.names[i] == nullptr)
        return invalid_argument("`%s()`: `options->names[%zu]` is `NULL`", name_, i);
      variables_.push_back(capi::unwrap(variables[i]));
    }
    return options_.position == nullptr ? kOk : read_position(options_.position, &position_);
  }

  CrossReplica context() noexcept { return strategy_.cross_replica(); }
  const dist_checkpoint_options& options() const noexcept { return options_; }
  Saved saved() noexcept {
    return {variables_, options_.names, options_.position == nullptr ? nullptr : &position_,
            options_.sharded == 1};
  }
  // Checks the position to be saved.
  Status check_position() const noexcept { return dist::check_position(position_); }
  Status texts(std::pmr::vector<StoredText>* out) const {
    const std::size_t n = options_.num_metadata;
    DIST_TRY(check_list(options_.metadata_keys, n, name_, "options->metadata_keys", "options->num_metadata"));
    DIST_TRY(
        check_list(options_.metadata_texts, n, name_, "options->metadata_texts", "options->num_metadata"));
    for (std::size_t i = 0; i < options_.num_metadata; ++i) {
      if (options_.metadata_keys[i] == nullptr || options_.metadata_texts[i] == nullptr)
        return invalid_argument("`%s()`: `options->metadata_keys[%zu]` or its text is `NULL`", name_, i);
      out->push_back({options_.metadata_keys[i], options_.metadata_texts[i]});
    }
    return kOk;
  }
  Status give_position() const noexcept {
    return options_.position == nullptr ? kOk : write_position(position_, options_.position);
  }

 private:
  const char* name_;
  Strategy& strategy_;
  dist_checkpoint_options options_{};
  std::pmr::vector<Variable*> variables_;
  Position position_;
};

// The common beginning of both functions that map tensors.
struct MapRequest {
  Status read(const char* call, const dist_checkpoint* checkpoint, const dist_checkpoint_map_options* given,
              dist_value** out_value) noexcept {
    DIST_TRY(require(checkpoint, call, "checkpoint"));
    DIST_TRY(require(out_value, call, "out_value"));
    DIST_TRY(read_options(given, &options, "dist_checkpoint_map_options"));
    DIST_TRY(require_flag(options.copy, "dist_checkpoint_map_options.copy"));
    DIST_TRY(require_flag(options.verify, "dist_checkpoint_map_options.verify"));
    DIST_TRY(require_zero(options.reserved, "dist_checkpoint_map_options.reserved"));
    file = &unwrap(checkpoint);
    return kOk;
  }
  Status value_of(const FoundTensor& tensor, ValueRef* out) const {
    return options.copy == 1 ? file->read(tensor, out) : file->map(tensor, options.verify == 1, out);
  }

  const Checkpoint* file = nullptr;
  dist_checkpoint_map_options options{};
};

}  // namespace

void dist_checkpoint_options_init(dist_checkpoint_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes);
}

dist_status dist_checkpoint_save(dist_strategy* strategy, const char* path, dist_variable* const* variables,
                                 size_t n, const dist_checkpoint_options* options) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_checkpoint_save", "strategy"));
    Request request(strategy, "dist_checkpoint_save");
    DIST_TRY(request.read(path, variables, n, options));
    std::pmr::vector<StoredText> texts(&capi::unwrap(strategy).memory());
    DIST_TRY(request.texts(&texts));
    DIST_TRY(request.check_position());
    BetweenRuns turn;
    DIST_TRY(turn.begin_among_workers(capi::unwrap(strategy), "dist_checkpoint_save"));
    DIST_TRY(turn.begin(capi::unwrap(strategy), "dist_checkpoint_save"));
    return save_checkpoint(request.context(), path, request.saved(), texts);
  });
}

dist_status dist_checkpoint_load(dist_strategy* strategy, const char* path, dist_variable* const* variables,
                                 size_t n, const dist_checkpoint_options* options) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_checkpoint_load", "strategy"));
    Request request(strategy, "dist_checkpoint_load");
    DIST_TRY(request.read(path, variables, n, options));
    BetweenRuns turn;
    DIST_TRY(turn.begin(capi::unwrap(strategy), "dist_checkpoint_load"));
    DIST_TRY(load_checkpoint(request.context(), path, request.saved()));
    return request.give_position();
  });
}

dist_status dist_checkpoint_open(dist_strategy* strategy, const char* path,
                                 dist_checkpoint** out_checkpoint) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_checkpoint_open", "strategy"));
    DIST_TRY(require(path, "dist_checkpoint_open", "path"));
    DIST_TRY(require(out_checkpoint, "dist_checkpoint_open", "out_checkpoint"));
    DIST_TRY(capi::unwrap(strategy).check_cross_replica("dist_checkpoint_open"));
    Ref<Checkpoint> checkpoint;
    DIST_TRY(about_file(path, Checkpoint::open(capi::unwrap(strategy).memory(), path, &checkpoint)));
    *out_checkpoint = reinterpret_cast<dist_checkpoint*>(checkpoint.take());
    return kOk;
  });
}

size_t dist_checkpoint_size(const dist_checkpoint* checkpoint) {
  return checkpoint == nullptr ? 0 : unwrap(checkpoint).tensors().size();
}

const char* dist_checkpoint_name(const dist_checkpoint* checkpoint, size_t index) {
  return index < dist_checkpoint_size(checkpoint) ? unwrap(checkpoint).tensors()[index].tensor->name : "";
}

dist_status dist_checkpoint_spec(const dist_checkpoint* checkpoint, const char* name, dist_tensor* out_spec) {
  return guard([&]() -> Status {
    DIST_TRY(require(checkpoint, "dist_checkpoint_spec", "checkpoint"));
    DIST_TRY(require(name, "dist_checkpoint_spec", "name"));
    DIST_TRY(require(out_spec, "dist_checkpoint_spec", "out_spec"));
    FoundTensor tensor;
    DIST_TRY(unwrap(checkpoint).find(name, &tensor));
    *out_spec = tensor.spec();
    return kOk;
  });
}

dist_status dist_checkpoint_read(const dist_checkpoint* checkpoint, const char* name,
                                 dist_value** out_value) {
  return guard([&]() -> Status {
    DIST_TRY(require(checkpoint, "dist_checkpoint_read", "checkpoint"));
    DIST_TRY(require(name, "dist_checkpoint_read", "name"));
    DIST_TRY(require(out_value, "dist_checkpoint_read", "out_value"));
    FoundTensor tensor;
    DIST_TRY(unwrap(checkpoint).find(name, &tensor));
    ValueRef value;
    DIST_TRY(unwrap(checkpoint).read(tensor, &value));
    *out_value = wrap(value.take());
    return kOk;
  });
}

void dist_checkpoint_map_options_init(dist_checkpoint_map_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes);
}

dist_status dist_checkpoint_map(const dist_checkpoint* checkpoint, const char* name,
                                const dist_checkpoint_map_options* options, dist_value** out_value) {
  return guard([&]() -> Status {
    constexpr const char* kCall = "dist_checkpoint_map";
    MapRequest request;
    DIST_TRY(request.read(kCall, checkpoint, options, out_value));
    DIST_TRY(require(name, kCall, "name"));
    FoundTensor tensor;
    DIST_TRY(request.file->find(name, &tensor));
    ValueRef value;
    DIST_TRY(request.value_of(tensor, &value));
    *out_value = wrap(value.take());
    return kOk;
  });
}

dist_status dist_checkpoint_map_all(const dist_checkpoint* checkpoint,
                                    const dist_checkpoint_map_options* options, dist_value** out_value) {
  return guard([&]() -> Status {
    MapRequest request;
    DIST_TRY(request.read("dist_checkpoint_map_all", checkpoint, options, out_value));
    Memory& memory = request.file->memory();
    const auto tensors = request.file->tensors();
    std::pmr::vector<ValueRef> kept(tensors.size(), &memory);
    std::pmr::vector<const char*> keys(&memory);
    std::pmr::vector<Value*> items(&memory);
    for (std::size_t i = 0; i < kept.size(); ++i) {
      DIST_TRY(request.value_of(tensors[i], &kept[i]));
      keys.push_back(tensors[i].tensor->name);
      items.push_back(kept[i].get());
    }
    ValueRef all;
    DIST_TRY(Value::create_dict(memory, keys, items, &all));
    *out_value = wrap(all.take());
    return kOk;
  });
}

size_t dist_checkpoint_num_metadata(const dist_checkpoint* checkpoint) {
  return checkpoint == nullptr ? 0 : unwrap(checkpoint).texts().size();
}

const char* dist_checkpoint_metadata_key(const dist_checkpoint* checkpoint, size_t index) {
  return index < dist_checkpoint_num_metadata(checkpoint) ? unwrap(checkpoint).texts()[index].key : "";
}

const char* dist_checkpoint_metadata(const dist_checkpoint* checkpoint, const char* key) {
  return checkpoint == nullptr || key == nullptr ? nullptr : unwrap(checkpoint).text(key);
}

void dist_checkpoint_destroy(dist_checkpoint* checkpoint) {
  if (checkpoint != nullptr) reinterpret_cast<Checkpoint*>(checkpoint)->release();
}
