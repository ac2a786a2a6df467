// SPDX-License-Identifier: Apache-2.0

package org.libdist.transcript;

import java.time.Duration;
import java.util.Map;
import org.libdist.Aggregation;
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
        Calls.text("enum_name", (p, l) -> name(l.number("domain"), l.number("value")));
        Calls.number("enum_from_name", (p, l) -> number(l.number("domain"), l.text("name")));
        Calls.number("reduce_op_from_aggregation",
                (p, l) -> Codes.of(ReduceOp.fromAggregation(Codes.get(Aggregation.class, l.number("aggregation")))));
        all.put("communication_options_merge", (p, l, came) -> {
            CommunicationOptions merged = communication(l, "base.").merge(communication(l, "over."));
            came.put("out.bytes_per_pack", Long.toString(merged.bytesPerPack()));
            came.put("out.timeout_ns", Long.toString(merged.timeout().map(Duration::toNanos).orElse(0L)));
        });
    }

    /** Of a value in a domain of C's: DIST_ENUM_.... */
    private static String name(int domain, int value) {
        return switch (domain) {
            case 0x1903, 0x1904 -> Codes.get(ReduceOp.class, value).tfName();
            case 0x1906 -> Codes.get(Synchronization.class, value).tfName();
            case 0x1907 -> Codes.get(Aggregation.class, value).tfName();
            case 0x1908 -> Codes.get(CrossDeviceKind.class, value).tfName();
            case 0x1909 -> Codes.get(InputMode.class, value).tfName();
            case 0x190A -> Codes.get(ShardPolicy.class, value).tfName();
            default -> throw new IllegalArgumentException("no enum of domain " + domain);
        };
    }

    private static int number(int domain, String name) {
        return Codes.of(switch (domain) {
            case 0x1904 -> ReduceOp.fromName(name);
            case 0x1906 -> Synchronization.fromName(name);
            case 0x1907 -> Aggregation.fromName(name);
            case 0x1908 -> CrossDeviceKind.fromName(name);
            case 0x1909 -> InputMode.fromName(name);
            case 0x190A -> ShardPolicy.fromName(name);
            default -> throw new IllegalArgumentException("no enum of domain " + domain);
        });
    }

    private static CommunicationOptions communication(Line l, String prefix) {
        return CommunicationOptions.DEFAULT.bytesPerPack(l.integer(prefix + "bytes_per_pack"))
                .timeout(Duration.ofNanos(l.integer(prefix + "timeout_ns")));
    }
}
