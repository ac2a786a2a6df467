// SPDX-License-Identifier: Apache-2.0
// The destination of a reduction's or a broadcast's result.
#pragma once

#include <cstdint>

#include "core/base/device_name.hpp"
#include "core/base/status.hpp"
#include "core/cross_replica/cross_replica.hpp"
#include "core/value/value.hpp"
#include "core/value/variable.hpp"

namespace dist {

// A requested destination. At most one pointer is set.
struct Destination {
  Variable* variable = nullptr;
  Value* value = nullptr;
  const char* device = nullptr;  // any of its names, or "replica:0" ...
  bool everywhere = false;       // on every replica; then no pointer is set
};

// A validated destination. All memory belongs to the host, so the only difference is whether every replica
// gets the result as its own (a mirrored value) or the result is a single tensor.
struct Place {
  bool mirrored = false;
};

// A strategy with one replica returns values unchanged, whatever the destination.
Status resolve(const CrossReplica& context, const Destination& destination, Place* out) noexcept;

// Returns the id in "replica:<id>", or -1 if the name has another form. Fails with NOT_FOUND if there is no
// such replica.
Status replica_of_device(const char* device, int32_t num_replicas, int32_t* out_id) noexcept;

// Returns `result` or a mirrored value of it. Values do not change, so replicas can share one tensor.
Status put(const CrossReplica& context, Place place, ValueRef result, ValueRef* out);

}  // namespace dist
