// SPDX-License-Identifier: Apache-2.0
// Variables and the input's position to a file, and back: under any strategy and number of replicas.
#pragma once

#include <cstddef>
#include <span>

#include "core/base/status.hpp"
#include "core/checkpoint/header.hpp"
#include "core/cross_replica/cross_replica.hpp"
#include "core/input/source.hpp"
#include "core/value/variable.hpp"

namespace dist {

// The variables and the position that are saved or loaded.
struct Saved {
  std::span<Variable* const> variables;
  const char* const* names = nullptr;  // in the file; NULL: the variables' own
  Position* position = nullptr;        // NULL: none
  bool sharded = false;                // saving: an index, and a shard of each worker's part
  const char* name(std::size_t i) const noexcept {
    return names == nullptr ? variables[i]->name() : names[i];
  }
};

// The file gets what read() gives of each variable. `texts` are the host's.
Status save_checkpoint(const CrossReplica& context, const char* path, const Saved& saved,
                       std::span<const StoredText> texts);

// Assigns the file's tensor to each variable. Everything is checked, the data too, before anything is
// written.
Status load_checkpoint(const CrossReplica& context, const char* path, const Saved& saved);

}  // namespace dist
