// SPDX-License-Identifier: Apache-2.0
// Encodes the messages of calls: a method's name and a value. A head describes the structure of the value.
// The elements of its tensors follow in row-major order, each tensor at a multiple of 64 bytes. Numbers are
// little-endian.
//
//     head     u32 magic, u32 size of the head, u16 size of the name, the name, the value
//     value    u8 kind, followed by  a tensor: u8 dtype, u8 ndim, i64 for each dimension
//                                    a text: u32 size, the text
//                                    a list, tuple or composite: u32 count, the items
//                                    a dictionary: u32 count, and for each item u32 size of the key, the key, the item
//                                    nothing: empty
//
// Invariant: a received message is not trusted. Every size is checked before it is used.
#pragma once

#include <cstddef>
#include <string_view>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/net/calls.hpp"
#include "core/value/value.hpp"

namespace dist {

inline constexpr std::size_t kMostHeadBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMostMessageValues = 65'536;  // including nested ones
inline constexpr std::size_t kMostMethodBytes = 255;

// Checks that a message can contain the name: one line of UTF-8 with 1 to kMostMethodBytes bytes. `what` is
// for example "the name of a method".
Status check_method_name(const char* name, const char* what) noexcept;

// Encodes a call or an answer. `value` may be NULL and must not change while the message exists. Of a
// variable, the current value is sent; of a sharded tensor, the whole tensor. Fails with INVALID_ARGUMENT for
// values that cannot be sent: values of several replicas, and host pointers.
Status write_message(Memory& memory, std::string_view method, Value* value, Ref<CallParts>* out);

// Reads only the method's name.
Status read_method(const Ref<CallMessage>& message, std::string_view* method) noexcept;
// The tensors borrow the message's memory, and `*method` points into it. Fails with INVALID_ARGUMENT if the
// message is invalid.
Status read_message(Memory& memory, const Ref<CallMessage>& message, std::string_view* method, ValueRef* out);

}  // namespace dist
