// SPDX-License-Identifier: Apache-2.0
#include "core/serve/batch_queue.hpp"

#include <algorithm>

namespace dist {

BatchQueue::BatchQueue(Memory& memory, int num_instances, const Options& options)
    : options_(options),
      buckets_(static_cast<std::size_t>(options.num_buckets), &memory),
      lanes_(&memory),
      heap_(&memory),
      deadlines_(&heap_),
      empty_(num_instances) {
  const auto most = static_cast<std::size_t>(options.max_items);
  lanes_.reserve(static_cast<std::size_t>(num_instances));
  for (int i = 0; i < num_instances; ++i) lanes_.emplace_back(memory).items.reserve(most);
  deadlines_.reserve(options.max_waiting + most * static_cast<std::size_t>(num_instances));
}

bool BatchQueue::arrive(Entry& entry, int64_t now_ns) noexcept {
  if (waiting_ >= options_.max_waiting) return false;
  Bucket& bucket = buckets_[static_cast<std::size_t>(entry.bucket)];
  entry.ticket = ++ticket_;
  entry.came_ns_ = now_ns;
  entry.held = entry.told = entry.in_step_ = false;
  entry.instance_ = -1;
  entry.queued = true;
  bucket.lines.add(entry);
  bucket.by_arrival.push_back(entry);
  ++bucket.waiting;
  ++waiting_;
  deadlines_.add(entry);
  return true;
}

void BatchQueue::leave(Entry& entry) noexcept {
  deadlines_.remove(entry);
  if (entry.queued) return take_out(entry);
  Lane& from = lane(entry.instance_);
  from.items.erase(std::find(from.items.begin(), from.items.end(), &entry));
  if (from.items.empty()) ++empty_;
  entry.in_step_ = false;
  detach(from, entry);
}

void BatchQueue::tell(Entry& entry) noexcept {
  entry.told = true;
  deadlines_.remove(entry);
}

// Whether the bucket may fill the room of an instance: no other due bucket has an entry that comes before its
// first one. So a bucket with a constant stream of arrivals cannot starve the others.
bool BatchQueue::is_first(const Bucket& bucket, int64_t now_ns) const noexcept {
  const Queued* const first = bucket.lines.first();
  if (first == nullptr) return false;
  for (const Bucket& each : buckets_) {
    if (&each != &bucket && is_due(each, now_ns) && each.lines.first()->before(*first)) return false;
  }
  return true;
}

bool BatchQueue::has_room(const Lane& lane, const Entry& entry) const noexcept {
  return lane.items.size() < static_cast<std::size_t>(options_.max_items) &&
         (options_.max_bytes == 0 || entry.bytes <= options_.max_bytes - lane.bytes);
}

bool BatchQueue::could_join(int instance, int64_t now_ns) const noexcept {
  const Lane& to = lane(instance);
  return std::any_of(buckets_.begin(), buckets_.end(), [&](const Bucket& each) {
    return is_due(each, now_ns) && has_room(to, static_cast<const Entry&>(*each.lines.first()));
  });
}

int64_t BatchQueue::due_at(int64_t now_ns) const noexcept {
  int64_t first = 0;
  for (const Bucket& each : buckets_) {
    if (each.waiting == 0 || is_due(each, now_ns)) continue;
    const int64_t at = each.oldest().came_ns_ + options_.max_delay_ns;
    if (first == 0 || at < first) first = at;
  }
  return first;
}

bool BatchQueue::has_own(int instance) const noexcept {
  const auto& items = lane(instance).items;
  return std::any_of(items.begin(), items.end(),
                     [](const Entry* each) { return !each->held && !each->told; });
}

int32_t BatchQueue::greatest_of(int instance) const noexcept {
  int32_t greatest = kLeastPriority;
  for (const Entry* const each : lane(instance).items) greatest = std::max(greatest, each->priority);
  return greatest;
}

void BatchQueue::join(Lane& lane, int instance, Entry& entry) noexcept {
  take_out(entry);
  if (lane.items.empty()) --empty_;
  lane.items.push_back(&entry);  // the capacity was reserved
  lane.bytes += entry.bytes;
  entry.instance_ = instance;
  ++active_;
}

std::size_t BatchQueue::form(int instance, int64_t now_ns, std::span<Entry*> out) noexcept {
  Lane& own = lane(instance);
  const int n = options_.num_buckets;
  for (int k = 0; k < n; ++k) {
    const int which = own.turn + k < n ? own.turn + k : own.turn + k - n;
    Bucket& bucket = buckets_[static_cast<std::size_t>(which)];
    std::size_t count = 0;
    for (Entry* const each : own.items) {
      if (each->bucket == which && !each->held && !each->told) out[count++] = each;
    }
    // Entries join if their bucket is due, or if the step starts anyway.
    if ((count > 0 || is_due(bucket, now_ns)) && is_first(bucket, now_ns)) {
      while (bucket.waiting > 0) {
        auto& first = static_cast<Entry&>(*bucket.lines.first());
        if (!has_room(own, first)) break;
        join(own, instance, first);
        out[count++] = &first;
      }
    }
    if (count == 0) continue;
    for (Entry* const each : out.first(count)) each->in_step_ = true;
    own.turn = which + 1 < n ? which + 1 : 0;
    own.stepping = true;
    return count;
  }
  return 0;
}

BatchQueue::Entry* BatchQueue::any_waiting() const noexcept {
  for (const Bucket& each : buckets_) {
    if (each.waiting != 0) return &each.oldest();
  }
  return nullptr;
}

}  // namespace dist
