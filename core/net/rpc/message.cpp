// SPDX-License-Identifier: Apache-2.0
#include "core/net/rpc/message.hpp"

#include <algorithm>
#include <cstring>
#include <memory_resource>
#include <string>
#include <vector>

#include "core/base/tensor.hpp"
#include "core/base/text.hpp"
#include "core/base/wire.hpp"
#include "core/value/composite.hpp"

namespace dist {
namespace {

constexpr uint32_t kMagic = 0x31435052;  // "RPC1"
constexpr std::size_t kPrefixBytes = 4 + 4 + 2;

constexpr std::size_t aligned(std::size_t bytes) noexcept {
  return (bytes + CallMessage::kAlign - 1) / CallMessage::kAlign * CallMessage::kAlign;
}

// A value's kind is sent as one byte, its difference from this number.
constexpr int32_t kNoKind = DIST_VALUE_TENSOR - 1;

// ---- Writing ----

class MessageParts final : public CallParts {
 public:
  MessageParts(Memory& memory, Value* value)
      : CallParts(memory), head_(&memory), parts_(&memory), stay_(&memory), kept_(&memory) {
    if (value != nullptr) kept_.push_back(ValueRef::share(value));
  }
  std::span<const std::span<const std::byte>> parts() const noexcept override { return parts_; }
  std::size_t bytes() const noexcept override { return bytes_; }
  bool stays(std::size_t part) const noexcept override { return stay_[part] != 0; }

  Status write(std::string_view method, const Value* value) {
    WireWriter out(grow(kPrefixBytes + method.size()));
    out.put(kMagic);
    out.put(uint32_t{0});
    out.put(static_cast<uint16_t>(method.size()));
    std::copy_n(reinterpret_cast<const std::byte*>(method.data()), method.size(), out.at());
    add({}, true);
    DIST_TRY(put(value));
    if (head_.size() > kMostHeadBytes) {
      return invalid_argument("the structure of the value takes %zu bytes, but can take at most %zu",
                              head_.size(), kMostHeadBytes);
    }
    WireWriter(head_.data() + 4).put(static_cast<uint32_t>(head_.size()));
    // Padding is only needed if tensors follow the head.
    if (parts_.size() > 1) head_.resize(aligned(head_.size()));
    parts_[0] = head_;
    for (const auto& each : parts_) bytes_ += each.size();
    return kOk;
  }

 private:
  ~MessageParts() override = default;

  void add(std::span<const std::byte> part, bool stays) {
    parts_.push_back(part);
    stay_.push_back(stays ? 1 : 0);
  }
  std::byte* grow(std::size_t bytes) {
    const std::size_t at = head_.size();
    head_.resize(at + bytes);
    return head_.data() + at;
  }
  template <class T>
  void put_number(T number) {
    WireWriter(grow(sizeof number)).put(number);
  }
  void put_text(std::string_view text) {
    put_number(static_cast<uint32_t>(text.size()));
    std::copy_n(reinterpret_cast<const std::byte*>(text.data()), text.size(), grow(text.size()));
  }

  Status put(const Value* value) {
    if (++values_ > kMostMessageValues) {
      return invalid_argument("the value has more than %zu parts", kMostMessageValues);
    }
    if (value == nullptr || value->is_none()) return put_kind(DIST_VALUE_NONE), kOk;
    if (value->has_tensor()) return put_tensor(value->kind() == DIST_VALUE_SHARDED ? value->whole() : *value);
    if (value->distributed() || value->kind() == DIST_VALUE_OBJECT) {
      return invalid_argument("%s cannot be sent to another process. Send tensors, texts, or nests of them.",
                              Value::kind_name(value->kind()));
    }
    put_kind(value->kind());
    if (value->text() != nullptr) return put_text(value->text()), kOk;
    put_number(static_cast<uint32_t>(value->items().size()));
    for (std::size_t i = 0; i < value->items().size(); ++i) {
      if (value->kind() == DIST_VALUE_DICT) put_text(value->key(i));
      DIST_TRY(put(value->items()[i].get()));
    }
    return kOk;
  }

  void put_kind(dist_value_kind kind) { put_number(static_cast<uint8_t>(kind - kNoKind)); }

  Status put_tensor(const Value& value) {
    dist_tensor tensor = value.tensor();
    TensorSize size;
    DIST_TRY(check_tensor(tensor, "a tensor", &size));
    put_kind(DIST_VALUE_TENSOR);
    put_number(static_cast<uint8_t>(tensor.dtype));
    put_number(static_cast<uint8_t>(tensor.ndim));
    for (int32_t i = 0; i < tensor.ndim; ++i) put_number(tensor.shape[i]);
    if (size.bytes == 0) return kOk;
    bool stays = value.keeps_elements();
    if (!size.contiguous) {
      stays = true;
      ValueRef copy;
      DIST_TRY(Value::copy_tensor(memory(), tensor, &copy));
      tensor = copy->tensor();
      kept_.push_back(std::move(copy));
    }
    add({static_cast<const std::byte*>(tensor.data), size.bytes}, stays);
    static constexpr std::byte kGap[CallMessage::kAlign] = {};
    const std::size_t gap = aligned(size.bytes) - size.bytes;
    if (gap != 0) add({kGap, gap}, true);
    return kOk;
  }

  std::pmr::vector<std::byte> head_;
  std::pmr::vector<std::span<const std::byte>> parts_;
  std::pmr::vector<uint8_t> stay_;  // stays() of each part
  std::pmr::vector<ValueRef> kept_;
  std::size_t values_ = 0;
  std::size_t bytes_ = 0;
};

// ---- Reading ----

Status no_message(const char* what) noexcept {
  return invalid_argument("the message is damaged or was not sent by libdist: %s", what);
}

class Reading {
 public:
  Reading(Memory& memory, const Ref<CallMessage>& message, std::size_t head_bytes) noexcept
      : memory_(memory),
        message_(message),
        head_bytes_(head_bytes),
        in_(message->data() + kPrefixBytes - 2, head_bytes - (kPrefixBytes - 2)),
        next_(aligned(head_bytes)) {}

  Status read(std::string_view* method, ValueRef* out) {
    const std::size_t bytes = in_.take<uint16_t>();
    if (bytes > kMostMethodBytes || !take_text(bytes, method))
      return no_message("its method name is invalid");
    DIST_TRY(take(0, out));
    if (in_.left() != 0) return no_message("it contains more than one value");
    if (message_->bytes() != (ends_ == 0 ? head_bytes_ : next_))
      return no_message("it has more bytes than its tensors need");
    return kOk;
  }

 private:
  bool take_text(std::size_t bytes, std::string_view* out) noexcept {
    const std::byte* const at = in_.take_bytes(bytes);
    if (at == nullptr) return false;
    *out = {reinterpret_cast<const char*>(at), bytes};
    // A C string ends at its first NUL, so a text must not contain one.
    return out->find('\0') == std::string_view::npos;
  }
  bool take_text(std::pmr::string* out) {
    std::string_view text;
    if (!take_text(in_.take<uint32_t>(), &text)) return false;
    *out = text;
    return true;
  }

  Status take(int depth, ValueRef* out) {
    if (++values_ > kMostMessageValues) return no_message("it contains too many values");
    const auto kind = static_cast<dist_value_kind>(kNoKind + in_.take<uint8_t>());
    if (!in_.good()) return no_message("a value is cut short");
    switch (kind) {
      case DIST_VALUE_NONE: *out = Value::create_none(memory_); return kOk;
      case DIST_VALUE_TENSOR: return take_tensor(out);
      case DIST_VALUE_TEXT: {
        std::pmr::string text(&memory_);
        if (!take_text(&text)) return no_message("a text is cut short");
        *out = Value::create_text(memory_, text.c_str());
        return kOk;
      }
      case DIST_VALUE_LIST:
      case DIST_VALUE_TUPLE:
      case DIST_VALUE_DICT:
      case DIST_VALUE_INDEXED_SLICES:
      case DIST_VALUE_RAGGED:
      case DIST_VALUE_SPARSE: return take_items(kind, depth, out);
      default: return no_message("a value is of an unknown kind");
    }
  }

  Status take_items(dist_value_kind kind, int depth, ValueRef* out) {
    if (depth >= kMaxNesting) return no_message("its values are nested too deeply");
    const std::size_t n = in_.take<uint32_t>();
    // Each item needs at least one byte.
    if (!in_.good() || n > in_.left()) return no_message("a value has more items than the message has bytes");
    std::pmr::vector<ValueRef> items(&memory_);
    std::pmr::vector<std::pmr::string> keys(&memory_);
    for (std::size_t i = 0; i < n; ++i) {
      if (kind == DIST_VALUE_DICT) {
        std::pmr::string key(&memory_);
        if (!take_text(&key)) return no_message("a key is cut short");
        keys.push_back(std::move(key));
      }
      DIST_TRY(take(depth + 1, &items.emplace_back()));
    }
    std::pmr::vector<Value*> plain(&memory_);
    for (const ValueRef& each : items) plain.push_back(each.get());
    if (kind == DIST_VALUE_DICT) {
      std::pmr::vector<const char*> names(&memory_);
      for (const auto& each : keys) names.push_back(each.c_str());
      return Value::create_dict(memory_, names, plain, out);
    }
    if (kind == DIST_VALUE_LIST || kind == DIST_VALUE_TUPLE) return Value::create(memory_, kind, plain, out);
    for (const ValueRef& each : items) {
      if (each->kind() != DIST_VALUE_TENSOR && !each->is_none())
        return no_message("a part of a value is not a tensor");
    }
    return create_composite(memory_, kind, plain, out);
  }

  Status take_tensor(ValueRef* out) {
    int64_t shape[DIST_MAX_NDIM] = {};
    dist_tensor tensor{message_->data(), static_cast<dist_dtype>(in_.take<uint8_t>()),
                       static_cast<int32_t>(in_.take_in<uint8_t>(0, DIST_MAX_NDIM)), shape, nullptr};
    for (int32_t i = 0; i < tensor.ndim; ++i) shape[i] = in_.take<int64_t>();
    if (!in_.good()) return no_message("the shape of a tensor is invalid");
    TensorSize size;
    DIST_TRY(check_tensor(tensor, "a tensor of the message", &size));
    if (size.bytes != 0) {
      if (next_ > message_->bytes() || size.bytes > message_->bytes() - next_)
        return no_message("a tensor has more elements than the message");
      tensor.data = message_->data() + next_;
      ends_ = next_ + size.bytes;
      next_ = aligned(ends_);
    }
    const auto let_go = [](void* held) { static_cast<CallMessage*>(held)->release(); };
    DIST_TRY(Value::wrap_tensor(memory_, tensor, let_go, message_.get(), out));
    message_->retain();
    return kOk;
  }

  Memory& memory_;
  const Ref<CallMessage>& message_;
  const std::size_t head_bytes_;
  WireReader in_;
  std::size_t next_;      // offset of the next tensor
  std::size_t ends_ = 0;  // end of the previous one
  std::size_t values_ = 0;
};

}  // namespace

Status check_method_name(const char* name, const char* what) noexcept {
  DIST_TRY(check_name(name, what));
  const std::size_t bytes = std::strlen(name);
  if (bytes != 0 && bytes <= kMostMethodBytes) return kOk;
  return invalid_argument("%s must have 1 to %zu bytes, but this one has %zu", what, kMostMethodBytes, bytes);
}

Status write_message(Memory& memory, std::string_view method, Value* value, Ref<CallParts>* out) {
  Ref<MessageParts> parts = make_counted<MessageParts>(memory, value);
  DIST_TRY(parts->write(method, value));
  *out = Ref<CallParts>::adopt(parts.take());
  return kOk;
}

namespace {

Status read_prefix(const Ref<CallMessage>& message, std::size_t* head_bytes) noexcept {
  const std::size_t bytes = message->bytes();
  if (bytes < kPrefixBytes) return no_message("it is cut short");
  WireReader in(message->data(), bytes);
  if (in.take<uint32_t>() != kMagic) return no_message("it does not begin like a message of libdist");
  *head_bytes = in.take<uint32_t>();
  if (*head_bytes < kPrefixBytes || *head_bytes > kMostHeadBytes || *head_bytes > bytes)
    return no_message("the size of its header is invalid");
  return kOk;
}

}  // namespace

Status read_method(const Ref<CallMessage>& message, std::string_view* method) noexcept {
  std::size_t head_bytes = 0;
  DIST_TRY(read_prefix(message, &head_bytes));
  WireReader in(message->data() + kPrefixBytes - 2, head_bytes - (kPrefixBytes - 2));
  const std::size_t bytes = in.take<uint16_t>();
  const std::byte* const at = in.take_bytes(bytes);
  if (at == nullptr || bytes > kMostMethodBytes) return no_message("its method name is invalid");
  *method = {reinterpret_cast<const char*>(at), bytes};
  return kOk;
}

Status read_message(Memory& memory, const Ref<CallMessage>& message, std::string_view* method,
                    ValueRef* out) {
  const std::size_t bytes = message->bytes();
  std::size_t head_bytes = 0;
  DIST_TRY(read_prefix(message, &head_bytes));
  Reading reading(memory, message, head_bytes);
  if (head_bytes == bytes || aligned(head_bytes) <= bytes) return reading.read(method, out);
  return no_message("the size of its header is invalid");
}

}  // namespace dist
