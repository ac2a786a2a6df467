// SPDX-License-Identifier: Apache-2.0
// ClusterResolver: finds the cluster to which this process belongs, and its task in it.
//
// Invariant: this base class answers from explicit options. The kinds of resolvers (the find_... functions)
// are asked only for what the options do not specify.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <string>

#include "core/base/held_port.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/cluster/cluster_spec.hpp"

namespace dist {

// A text from a resolver, and its source.
struct FoundText {
  bool is_set = false;
  const char* source = "not set";
  char text[DIST_MAX_ADDRESS_BYTES] = "";

  // Fails with INVALID_ARGUMENT if the text is too long or not a single line.
  Status set(std::string_view value, const char* from, const char* what) noexcept;
};

struct FoundNumber {
  int32_t number = DIST_TASK_UNSET;
  const char* source = "not set";
};

// The task that a caller asks for. NULL and DIST_TASK_UNSET mean unspecified.
struct AskedTask {
  const char* type = nullptr;
  int32_t id = DIST_TASK_UNSET;
  const char* rpc_layer = nullptr;

  bool is_whole() const noexcept { return type != nullptr && id != DIST_TASK_UNSET; }
};

// A text is NULL if it was not given.
struct ResolverOptions {
  const char* task_type = nullptr;
  int32_t task_id = DIST_TASK_UNSET;
  int32_t num_accelerators = 0;
  const char* rpc_layer = nullptr;
  const char* environment = nullptr;
  const char* session_address = nullptr;
  const char* tf_config = nullptr;
};

class ClusterResolver : public Counted {
 public:
  virtual Status spec(Ref<ClusterSpec>* out) const = 0;
  Status task_type(FoundText* out) const;
  Status task_id(FoundNumber* out) const;
  Status rpc_layer(FoundText* out) const;
  Status environment(FoundText* out) const;
  // "grpc://host:port" of a task, or what this kind returns if the task is not fully specified.
  Status address(const AskedTask& asked, FoundText* out) const;
  Status num_accelerators(const AskedTask& asked, FoundNumber* out) const;
  // The port on which the task of this process listens already, or NULL.
  virtual HeldPort* held_port() const noexcept { return nullptr; }
  // The ids in the format of CUDA_VISIBLE_DEVICES.
  virtual Status gpu_ids(FoundText* out) const;
  // The number of resolvers: this one and all that it consists of.
  virtual std::size_t num_members() const noexcept { return 1; }
  // A description, in lines of the form "subject: text".
  std::pmr::string explain() const;

 protected:
  ClusterResolver(Memory& memory, const ResolverOptions& options);

  virtual const char* kind() const noexcept = 0;
  virtual const char* spec_source() const noexcept = 0;
  virtual Status find_task_type(FoundText* out) const = 0;
  virtual Status find_task_id(FoundNumber* out) const = 0;
  virtual Status find_rpc_layer(FoundText* out) const = 0;
  virtual Status find_environment(FoundText* out) const;  // default: ""
  virtual Status find_address(const AskedTask& asked, FoundText* out) const = 0;
  virtual Status find_num_accelerators(const AskedTask& asked, FoundNumber* out) const;  // default: 0

  // The address of a fully specified task, with the requested RPC layer or otherwise that of this resolver.
  Status task_address(const AskedTask& asked, FoundText* out) const;
  // The same, with this process's type or id in place of those that are not specified; "" if they are
  // unknown.
  Status own_or_asked_address(const AskedTask& asked, FoundText* out) const;
  // Returns `address` with the RPC layer in front.
  Status with_layer(const char* asked_layer, const char* address, const char* source, FoundText* out) const;
  // The texts given in the options; NULL: not given.
  const char* given_session_address() const noexcept { return text_or_null(session_address_); }
  const char* given_tf_config() const noexcept { return text_or_null(tf_config_); }
  const char* given_rpc_layer() const noexcept { return text_or_null(rpc_layer_); }

 private:
  struct Text {
    bool given;
    std::pmr::string text;
  };
  static const char* text_or_null(const Text& text) noexcept {
    return text.given ? text.text.c_str() : nullptr;
  }

  const Text task_type_;
  const Text rpc_layer_;
  const Text environment_;
  const Text session_address_;
  const Text tf_config_;
  const int32_t task_id_;
  const int32_t num_accelerators_;
};

// Checks that texts and numbers are within their limits.
Status check(const ResolverOptions& options) noexcept;

// "layer://address"; "" means no layer.
Status join_address(const char* layer, const char* address, const char* source, FoundText* out) noexcept;

// Returns the environment variable, or NULL. No other thread may change the environment during the call.
const char* environment_text(const char* name) noexcept;

}  // namespace dist
