// SPDX-License-Identifier: Apache-2.0

package org.libdist.transcript;

import java.time.Duration;
import java.util.Map;
import org.libdist.Aggregation;
import org.libdist.Communication;
import org.libdist.CommunicationOptions;
import org.libdist.CrossDeviceKind;
import org.libdist.InputMode;
import org.libdist.ReduceOp;
import org.libdist.ShardPolicy;
import org.libdist.Synchronization;

/** The calls about names and about options for communication. */
final class NameCalls {
    private NameCalls() {}

    static void addTo(Map<String, Calls.Call> all) {
        Calls.text("reduce_op_name", (p, l) -> Calls.op(l).tfName());
        Calls.text("communication_name", (p, l) -> Communication.values()[l.number("implementation")].tfName());
        Calls.text("cross_device_name", (p, l) -> CrossDeviceKind.values()[l.number("kind")].tfName());
        Calls.text("synchronization_name",
                (p, l) -> Synchronization.values()[l.number("synchronization")].tfName());
        Calls.text("aggregation_name", (p, l) -> Aggregation.values()[l.number("aggregation")].tfName());
        Calls.text("input_mode_name", (p, l) -> InputMode.values()[l.number("mode")].tfName());
        Calls.text("shard_policy_name", (p, l) -> ShardPolicy.values()[l.number("policy") + 1].tfName());
        Calls.number("reduce_op_from_name", (p, l) -> ReduceOp.fromName(l.text("name")).ordinal() + 1);
        Calls.number("communication_from_name", (p, l) -> Communication.fromName(l.text("name")).ordinal());
        Calls.number("aggregation_from_name", (p, l) -> Aggregation.fromName(l.text("name")).ordinal());
        Calls.number("input_mode_from_name", (p, l) -> InputMode.fromName(l.text("name")).ordinal());
        Calls.number("shard_policy_from_name", (p, l) -> ShardPolicy.fromName(l.text("name")).ordinal() - 1);
        Calls.number("reduce_op_from_aggregation",
                (p, l) -> ReduceOp.fromAggregation(Aggregation.values()[l.number("aggregation")]).ordinal()
                        + 1);
        all.put("communication_options_merge", (p, l, came) -> {
            CommunicationOptions merged = communication(l, "base.").merge(communication(l, "over."));
            came.put("out.implementation", Integer.toString(merged.implementation().ordinal()));
            came.put("out.bytes_per_pack", Long.toString(merged.bytesPerPack()));
            came.put("out.timeout_ns", Long.toString(merged.timeout().map(Duration::toNanos).orElse(0L)));
            came.put("out.has_timeout", merged.timeout().isPresent() ? "1" : "0");
        });
        Calls.text("communication_options_describe", (p, l) -> communication(l, "options.").describe());
    }

    private static CommunicationOptions communication(Line l, String prefix) {
        CommunicationOptions options =
                CommunicationOptions.DEFAULT
                        .implementation(Communication.values()[l.number(prefix + "implementation")])
                        .bytesPerPack(l.integer(prefix + "bytes_per_pack"));
        long timeout = l.integer(prefix + "timeout_ns");
        boolean given = timeout != 0 || l.number(prefix + "has_timeout") != 0;
        return given ? options.timeout(Duration.ofNanos(timeout)) : options;
    }
}
