// SPDX-License-Identifier: Apache-2.0

package org.libdist.transcript;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.libdist.Dataset;
import org.libdist.DatasetFunction;
import org.libdist.FileSourceFunction;
import org.libdist.InitialFunction;
import org.libdist.MergeFunction;
import org.libdist.ReduceFunction;
import org.libdist.Scope;
import org.libdist.SourceFunction;
import org.libdist.Tensor;
import org.libdist.UpdateFunction;
import org.libdist.UpdateFunction;
import org.libdist.Value;
import org.libdist.ComponentFunction;
import org.libdist.ValuesFunction;

/** The program's functions: one for each kind of TRANSCRIPTS.md's table. */
final class Functions {
    /** The scopes that a thread is in. */
    static final ThreadLocal<Deque<Scope>> SCOPES = ThreadLocal.withInitial(ArrayDeque::new);

    private Functions() {}

    /** A value that a function is given; the function's own hold on it ends with the function. */
    private static void give(Player p, Line line, Map<String, String> given, String key, Value value) {
        if (value != null) {
            p.bindValue(line.given, given, key, value.retain());
        }
    }

    private static Value named(Player p, String result) {
        return result == null ? null : p.named(Value.class, result);
    }

    static ValuesFunction<RuntimeException> replica(Player p, Line call) {
        return (replica, args, kwargs) -> {
            String id = Integer.toString(replica.id());
            Line line = p.take(call, "replica", l -> l.given.get("id").equals(id));
            Map<String, String> given = new HashMap<>();
            given.put("id", id);
            given.put("replica", p.bind(line.given, "replica", replica));
            give(p, line, given, "args", args);
            give(p, line, given, "kwargs", kwargs);
            return named(p, p.perform(line, given));
        };
    }

    static MergeFunction<RuntimeException> merge(Player p, Line call) {
        return (strategy, args, kwargs) -> {
            Line line = p.take(call, "merge", l -> true);
            Map<String, String> given = new HashMap<>();
            given.put("strategy", p.bind(line.given, "strategy", strategy));
            give(p, line, given, "args", args);
            give(p, line, given, "kwargs", kwargs);
            return named(p, p.perform(line, given));
        };
    }

    private static void change(Tensor copy, Line line) {
        if (line.answered.containsKey("copy")) {
            copy.bytes().put(Literals.tensor(line.answered.get("copy")).bytes());
        }
    }

    static UpdateFunction<RuntimeException> update(Player p, Line call) {
        return (place, args, kwargs) -> {
            Map<String, String> given = new LinkedHashMap<>();
            given.put("replica", Integer.toString(place.replica()));
            given.put("device", Literals.ofText(place.device()));
            if (place.copy() != null) {
                given.put("copy", Literals.of(place.copy()));
            }
            Line line = p.take(call, "update",
                    l -> given.entrySet().stream().allMatch(
                            field -> field.getValue().equals(l.given.get(field.getKey()))));
            give(p, line, given, "args", args);
            give(p, line, given, "kwargs", kwargs);
            change(place.copy(), line);
            return named(p, p.perform(line, given));
        };
    }

    static ComponentFunction<RuntimeException> value(Player p, Line call) {
        return (replica, numReplicas) -> {
            Map<String, String> given = new HashMap<>();
            given.put("replica_id_in_sync_group", Integer.toString(replica));
            given.put("num_replicas_in_sync", Integer.toString(numReplicas));
            Line line = p.take(call, "value", l -> l.integer("replica_id_in_sync_group") == replica);
            return named(p, p.perform(line, given));
        };
    }

    static InitialFunction<RuntimeException> initial(Player p, Line call) {
        return () -> named(p, p.perform(p.take(call, "initial", l -> true), new HashMap<>()));
    }

    static SourceFunction source(Player p, Line call) {
        p.prepare(call);
        return index -> p.element(call, l -> l.integer("index") == index);
    }

    static FileSourceFunction file(Player p, Line call) {
        p.prepare(call);
        return (file, name, index) -> p.element(call,
                               l -> l.integer("file") == file && l.text("name").equals(name)
                                       && l.integer("index") == index);
    }

    static DatasetFunction<RuntimeException> dataset(Player p, Line call) {
        return context -> {
            Map<String, String> given = new HashMap<>();
            given.put("num_input_pipelines", Integer.toString(context.numInputPipelines()));
            given.put("input_pipeline_id", Integer.toString(context.inputPipelineId()));
            given.put("num_replicas_in_sync", Integer.toString(context.numReplicasInSync()));
            Line line =
                    p.take(call, "dataset", l -> l.integer("input_pipeline_id") == context.inputPipelineId());
            String result = p.perform(line, given);
            if (result == null) {
                return null;
            }
            p.libdistEnds(result);
            return p.named(Dataset.class, result);
        };
    }

    static ReduceFunction accumulate(Player p, Line call) {
        return (acc, in) -> {
            Map<String, String> given = new HashMap<>();
            given.put("acc", Literals.of(acc.dtype(), acc.shape(), acc.toBytes()));
            given.put("in", Literals.of(in.dtype(), in.shape(), in.toBytes()));
            Line line = p.take(call, "accumulate", l -> l.given.equals(given));
            acc.put(org.libdist.Tensors.toBytes(Literals.tensor(line.answered.get("acc"))));
        };
    }
}
