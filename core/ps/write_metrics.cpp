// SPDX-License-Identifier: Apache-2.0
#include "core/ps/write_metrics.hpp"

#include "core/trace/exposition.hpp"

namespace dist {

void write_metrics(const CoordinatorNumbers& now, const char* strategy, TextOut& out) {
  Exposition page(strategy, out);
  const auto gauge = [&](const char* name, const char* help, int64_t number) {
    page.single(name, "gauge", help, static_cast<uint64_t>(number));
  };
  const auto counter = [&](const char* name, const char* help, uint64_t number) {
    page.single(name, "counter", help, number);
  };
  gauge("dist_workers_up", "Workers that can run closures.", now.workers_up);
  gauge("dist_closures_queued", "Closures that wait for a worker.", now.queued);
  gauge("dist_closures_in_flight", "Closures that were sent to a worker and have not completed.",
        now.in_flight);
  counter("dist_closures_scheduled_total", "Closures that were scheduled.",
          static_cast<uint64_t>(now.scheduled));
  page.family("dist_closures_total", "counter", "Closures that have completed, by outcome.");
  const auto ended = [&](const char* how, int64_t number) {
    page.sample("dist_closures_total");
    page.label("end", how);
    page.value(static_cast<uint64_t>(number));
  };
  ended("completed", now.completed);
  ended("failed", now.failed);
  ended("cancelled", now.cancelled);
  counter("dist_closure_losses_total", "Closures that were lost with a worker and queued again.",
          static_cast<uint64_t>(now.losses));
  counter("dist_coordinator_sent_bytes_total",
          "Bytes of messages to all servers, without the overhead of gRPC.", now.bytes_sent);
  counter("dist_coordinator_received_bytes_total",
          "Bytes of messages from all servers, without the overhead of gRPC.", now.bytes_received);
}

}  // namespace dist
