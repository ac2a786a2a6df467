// SPDX-License-Identifier: Apache-2.0
// What calls say, as bytes: a method's name and a value. In front stands a head with the structure of the value; behind it
// lie the elements of its tensors, row-major, each tensor at a multiple of 64 bytes. Numbers are little-endian.
//
//     head     u32 magic, u32 bytes of the head, u16 bytes of the name, the name, the value
//     value    u8 kind, and then      a tensor: u8 dtype, u8 ndim, i64 of each dimension
//                                     a text: u32 bytes, the text
//                                     a list, tuple or composite: u32 items, the items
//                                     a dictionary: u32 items, and of each u32 bytes of the key, the key, the item
//                                     nothing: no more
#pragma once

#include <cstddef>
#include <string_view>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/engine/calls.hpp"
#include "core/value/value.hpp"

namespace dist {

inline constexpr std::size_t kMostHeadBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMostMessageValues = 65'536;  // with those inside of others
inline constexpr std::size_t kMostMethodBytes = 255;

// OK for a name that a message can carry: one line of UTF-8, of 1 to kMostMethodBytes bytes. `what` is "the name of a method".
Status check_method_name(const char* name, const char* what) noexcept;

// `value` NULL: nothing. A variable is its value, and a sharded tensor the whole. The value stays as it is until the message
// is gone. INVALID_ARGUMENT for what cannot be sent: values of several replicas, the host's pointers.
Status write_message(Memory& memory, std::string_view method, Value* value, Ref<CallParts>* out);

// The method alone.
Status read_method(const Ref<CallMessage>& message, std::string_view* method) noexcept;
// Tensors borrow the message. INVALID_ARGUMENT: it is none. `*method` lies in the message.
Status read_message(Memory& memory, const Ref<CallMessage>& message, std::string_view* method, ValueRef* out);

}  // namespace dist
