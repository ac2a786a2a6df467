// SPDX-License-Identifier: Apache-2.0
// Saves variables and the position in the input to a file and loads them, independently of the kind of
// strategy and of the number of replicas.
#pragma once

#include <cstddef>
#include <span>

#include "core/base/status.hpp"
#include "core/checkpoint/header.hpp"
#include "core/cross_replica/cross_replica.hpp"
#include "core/input/source.hpp"
#include "core/value/variable.hpp"

namespace dist {

// The variables and the position to save or load.
struct Saved {
  std::span<Variable* const> variables;
  const char* const* names = nullptr;  // in the file; NULL: the names of the variables
  Position* position = nullptr;        // may be NULL
  bool sharded = false;                // when saving: writes an index and one shard per worker
  const char* name(std::size_t i) const noexcept {
    return names == nullptr ? variables[i]->name() : names[i];
  }
};

// Saves the value of each variable as returned by read(). `texts` are the host's.
Status save_checkpoint(const CrossReplica& context, const char* path, const Saved& saved,
                       std::span<const StoredText> texts);

// Assigns the tensors of the file to the variables. Everything, including the data, is checked before
// anything is written.
Status load_checkpoint(const CrossReplica& context, const char* path, const Saved& saved);

}  // namespace dist
