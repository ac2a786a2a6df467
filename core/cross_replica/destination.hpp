// SPDX-License-Identifier: Apache-2.0
// Where the result of a reduction or a broadcast is placed.
#pragma once

#include <cstdint>

#include "core/base/device_name.hpp"
#include "core/base/status.hpp"
#include "core/cross_replica/cross_replica.hpp"
#include "core/value/value.hpp"
#include "core/value/variable.hpp"

namespace dist {

// At most one pointer is set.
struct Destination {
  Variable* variable = nullptr;
  Value* value = nullptr;
  const char* device = nullptr;  // by any of its names, or "replica:0" ...
  bool everywhere = false;       // on every replica, and no pointer set
};

// Place: a destination that was checked. All memory is the host's, so that a place only says whether every
// replica has the result as its own (a mirrored value) or the result is one tensor.
struct Place {
  bool mirrored = false;
};

// Strategies with one replica give values back as they are, wherever they are wanted.
Status resolve(const CrossReplica& context, const Destination& destination, Place* out) noexcept;

// The id in "replica:<id>"; -1 for a name of another form; NOT_FOUND where there is no such replica.
Status replica_of_device(const char* device, int32_t num_replicas, int32_t* out_id) noexcept;

// `result`, or a mirrored value of it: values do not change, so that replicas can share one tensor.
Status put(const CrossReplica& context, Place place, ValueRef result, ValueRef* out);

}  // namespace dist
