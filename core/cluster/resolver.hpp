// SPDX-License-Identifier: Apache-2.0
// ClusterResolver: which cluster a process is part of, and which task of it the process is. What an option
// gives is answered here; what is to be found, by the kinds of resolvers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <string>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/cluster/cluster_spec.hpp"

namespace dist {

// A text that a resolver gives, and where it comes from.
struct FoundText {
  bool is_set = false;
  const char* source = "not set";
  char text[DIST_MAX_ADDRESS_BYTES] = "";

  // INVALID_ARGUMENT where it is too long, or not one line.
  Status set(std::string_view value, const char* from, const char* what) noexcept;
};

struct FoundNumber {
  int32_t number = DIST_TASK_UNSET;
  const char* source = "not set";
};

// What a caller asks for: NULL and DIST_TASK_UNSET are not said.
struct AskedTask {
  const char* type = nullptr;
  int32_t id = DIST_TASK_UNSET;
  const char* rpc_layer = nullptr;

  bool is_whole() const noexcept { return type != nullptr && id != DIST_TASK_UNSET; }
};

// Texts are NULL where they are not given.
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
  // "grpc://host:port" of a task, or what this kind has where no whole task is asked for.
  Status address(const AskedTask& asked, FoundText* out) const;
  Status num_accelerators(const AskedTask& asked, FoundNumber* out) const;
  // As CUDA_VISIBLE_DEVICES has them.
  virtual Status gpu_ids(FoundText* out) const;
  // This resolver, and those that it is made of.
  virtual std::size_t num_members() const noexcept { return 1; }
  // All of it in words, in lines of "subject: words".
  std::pmr::string explain() const;

 protected:
  ClusterResolver(Memory& memory, const ResolverOptions& options);

  virtual const char* kind() const noexcept = 0;
  virtual const char* spec_source() const noexcept = 0;
  virtual Status find_task_type(FoundText* out) const = 0;
  virtual Status find_task_id(FoundNumber* out) const = 0;
  virtual Status find_rpc_layer(FoundText* out) const = 0;
  virtual Status find_environment(FoundText* out) const;  // "" by default
  virtual Status find_address(const AskedTask& asked, FoundText* out) const = 0;
  virtual Status find_num_accelerators(const AskedTask& asked, FoundNumber* out) const;  // 0 by default

  // The address of a whole task, with the RPC layer that was asked for, else this resolver's.
  Status task_address(const AskedTask& asked, FoundText* out) const;
  // The same of this process where type or id are not asked for; "" where they are not known.
  Status own_or_asked_address(const AskedTask& asked, FoundText* out) const;
  // `address` with the layer before it.
  Status with_layer(const char* asked_layer, const char* address, const char* source, FoundText* out) const;
  // A given text as options have it; NULL: it was not given.
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

// OK where texts and numbers are within their limits.
Status check(const ResolverOptions& options) noexcept;

// "layer://address"; "" is no layer.
Status join_address(const char* layer, const char* address, const char* source, FoundText* out) noexcept;

// The environment variable, or NULL. Not while another thread changes the environment.
const char* environment_text(const char* name) noexcept;

}  // namespace dist
