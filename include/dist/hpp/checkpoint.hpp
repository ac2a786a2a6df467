// SPDX-License-Identifier: Apache-2.0
//
// dist/hpp/checkpoint.hpp: variables in safetensors files (checkpoint.h).
//
//     dist::checkpoint::save(strategy, "model.safetensors", {weights, bias});
//     dist::checkpoint::load(strategy, "model.safetensors", {weights, bias});
//
//     const dist::checkpoint file(strategy, "model.safetensors");
//     const dist::value all = file.map_all();                                         // a dictionary, without a copy
#ifndef DIST_HPP_CHECKPOINT_HPP
#define DIST_HPP_CHECKPOINT_HPP

#include "variable.hpp"

struct dist_checkpoint;  // the C type

namespace dist {

// A file of tensors, open for reading. Also saves variables to a file and loads them.
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

  checkpoint(const strategy_ref &owner, const char *path);
  std::size_t size() const noexcept;
  const char *name(std::size_t index) const noexcept;
  // Dtype and shape, without data. Borrowed. dtype 0 = not supported by libdist.
  dist_tensor spec(const char *name) const;
  value read(const char *name) const;
  // Maps a tensor, or all of them as a dictionary. The value keeps the mapping; its elements must not be written.
  value map(const char *name, bool verify = false) const;
  value map_all(bool verify = false) const;
  std::size_t num_metadata() const noexcept;
  const char *metadata_key(std::size_t index) const noexcept;
  // NULL if there is no text under this key.
  const char *metadata(const char *key) const noexcept;
  [[nodiscard]] dist_checkpoint *get() const noexcept;

 private:
  static std::vector<dist_variable *> handles_of(const std::vector<variable_ref> &variables) {
    std::vector<dist_variable *> handles;
    handles.reserve(variables.size());
    for (const variable_ref &each : variables) handles.push_back(each.get());
    return handles;
  }

  struct destroy {
    void operator()(dist_checkpoint *handle) const noexcept;
  };
  std::unique_ptr<dist_checkpoint, destroy> handle_;
};

inline checkpoint::checkpoint(const strategy_ref &owner, const char *path) {
  dist_checkpoint *opened = nullptr;
  check(dist_checkpoint_open(owner.get(), path, &opened));
  handle_.reset(opened);
}

inline std::size_t checkpoint::size() const noexcept { return dist_checkpoint_size(handle_.get()); }

inline const char *checkpoint::name(std::size_t index) const noexcept {
  return dist_checkpoint_name(handle_.get(), index);
}

inline dist_tensor checkpoint::spec(const char *name) const {
  dist_tensor found;
  check(dist_checkpoint_spec(handle_.get(), name, &found));
  return found;
}

inline value checkpoint::read(const char *name) const {
  return value::made([&](dist_value **out) { return dist_checkpoint_read(handle_.get(), name, out); });
}

inline value checkpoint::map(const char *name, bool verify) const {
  dist_checkpoint_map_options options = DIST_CHECKPOINT_MAP_OPTIONS_INIT;
  options.verify = verify ? 1 : 0;
  return value::made(
      [&](dist_value **out) { return dist_checkpoint_map(handle_.get(), name, &options, out); });
}

inline value checkpoint::map_all(bool verify) const {
  dist_checkpoint_map_options options = DIST_CHECKPOINT_MAP_OPTIONS_INIT;
  options.verify = verify ? 1 : 0;
  return value::made([&](dist_value **out) { return dist_checkpoint_map_all(handle_.get(), &options, out); });
}

inline std::size_t checkpoint::num_metadata() const noexcept {
  return dist_checkpoint_num_metadata(handle_.get());
}

inline const char *checkpoint::metadata_key(std::size_t index) const noexcept {
  return dist_checkpoint_metadata_key(handle_.get(), index);
}

inline const char *checkpoint::metadata(const char *key) const noexcept {
  return dist_checkpoint_metadata(handle_.get(), key);
}

inline dist_checkpoint *checkpoint::get() const noexcept { return handle_.get(); }

inline void checkpoint::destroy::operator()(dist_checkpoint *handle) const noexcept {
  dist_checkpoint_destroy(handle);
}

}  // namespace dist

#endif  // DIST_HPP_CHECKPOINT_HPP
