// SPDX-License-Identifier: Apache-2.0
//
// dist/hpp/checkpoint.hpp: checkpoint.h for C++: variables in safetensors files.
#ifndef DIST_HPP_CHECKPOINT_HPP
#define DIST_HPP_CHECKPOINT_HPP

#include "variable.hpp"

namespace dist {

// A file of tensors, open for reading; and how variables are saved to one and loaded from it.
class checkpoint {
 public:
  static void save(const strategy_ref &owner, const char *path, const std::vector<variable_ref> &variables,
                   const dist_checkpoint_options &options) {
    const auto handles = handles_of(variables);
    check(dist_checkpoint_save(owner.get(), path, handles.data(), handles.size(), &options));
  }
  static void save(const strategy_ref &owner, const char *path, const std::vector<variable_ref> &variables) {
    const dist_checkpoint_options options = DIST_CHECKPOINT_OPTIONS_INIT;
    save(owner, path, variables, options);
  }
  static void load(const strategy_ref &owner, const char *path, const std::vector<variable_ref> &variables,
                   const dist_checkpoint_options &options) {
    const auto handles = handles_of(variables);
    check(dist_checkpoint_load(owner.get(), path, handles.data(), handles.size(), &options));
  }
  static void load(const strategy_ref &owner, const char *path, const std::vector<variable_ref> &variables) {
    const dist_checkpoint_options options = DIST_CHECKPOINT_OPTIONS_INIT;
    load(owner, path, variables, options);
  }

  checkpoint(const strategy_ref &owner, const char *path) {
    dist_checkpoint *opened = nullptr;
    check(dist_checkpoint_open(owner.get(), path, &opened));
    handle_.reset(opened);
  }
  std::size_t size() const noexcept { return dist_checkpoint_size(handle_.get()); }
  const char *name(std::size_t index) const noexcept { return dist_checkpoint_name(handle_.get(), index); }
  // Dtype and shape, without data. Borrowed; dtype 0: one that libdist has not.
  dist_tensor spec(const char *name) const {
    dist_tensor found;
    check(dist_checkpoint_spec(handle_.get(), name, &found));
    return found;
  }
  value read(const char *name) const {
    return value::made([&](dist_value **out) { return dist_checkpoint_read(handle_.get(), name, out); });
  }
  std::size_t num_metadata() const noexcept { return dist_checkpoint_num_metadata(handle_.get()); }
  const char *metadata_key(std::size_t index) const noexcept {
    return dist_checkpoint_metadata_key(handle_.get(), index);
  }
  // NULL where there is none under this key.
  const char *metadata(const char *key) const noexcept {
    return dist_checkpoint_metadata(handle_.get(), key);
  }
  dist_checkpoint *get() const noexcept { return handle_.get(); }

 private:
  static std::vector<dist_variable *> handles_of(const std::vector<variable_ref> &variables) {
    std::vector<dist_variable *> handles;
    handles.reserve(variables.size());
    for (const variable_ref &each : variables) handles.push_back(each.get());
    return handles;
  }

  struct destroy {
    void operator()(dist_checkpoint *handle) const noexcept { dist_checkpoint_destroy(handle); }
  };
  std::unique_ptr<dist_checkpoint, destroy> handle_;
};

}  // namespace dist
#endif  // DIST_HPP_CHECKPOINT_HPP
