// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.libdist.internal.DistModule;
import org.libdist.internal.dist_checkpoint_map_options;
import org.libdist.internal.dist_position;

/** A safetensors file of variables: saved and loaded, with any number of replicas, or open for reading. */
public final class Checkpoint extends NativeObject {
    private Checkpoint(Native owner) {
        super(owner);
    }

    /** Writes a file, in one step: whenever the process ends, the old file or the new one is there, whole. */
    public static void save(
            Strategy strategy, Path path, List<Variable> variables, CheckpointOptions options) {
        checkNames(variables, options);
        try (Uses uses = new Uses()) {
            DistModule.dist_checkpoint_save(uses.waiting(strategy), bytes(path),
                    uses.all(variables, "variables"), variables.size(),
                    options.toNative(uses, options.place(uses)));
        }
    }

    /** As {@link #save(Strategy, Path, List, CheckpointOptions)}, of the variables alone. */
    public static void save(Strategy strategy, Path path, List<Variable> variables) {
        save(strategy, path, variables, CheckpointOptions.DEFAULT);
    }

    /**
     * Gives variables the values that a file has for them.
     *
     * @return where the input was, if the options ask for a position
     */
    public static Optional<Position> load(
            Strategy strategy, Path path, List<Variable> variables, CheckpointOptions options) {
        checkNames(variables, options);
        try (Uses uses = new Uses()) {
            dist_position place = options.place(uses);
            DistModule.dist_checkpoint_load(uses.waiting(strategy), bytes(path),
                    uses.all(variables, "variables"), variables.size(), options.toNative(uses, place));
            return options.hasPosition() ? Optional.of(Position.of(place)) : Optional.empty();
        }
    }

    /** As {@link #load(Strategy, Path, List, CheckpointOptions)}, of the variables alone. */
    public static void load(Strategy strategy, Path path, List<Variable> variables) {
        load(strategy, path, variables, CheckpointOptions.DEFAULT);
    }

    private static void checkNames(List<Variable> variables, CheckpointOptions options) {
        if (options.numNames(variables.size()) != variables.size()) {
            throw new IllegalArgumentException(
                    options.numNames(0) + " names for " + variables.size() + " variables");
        }
    }

    private static byte[] bytes(Path path) {
        return Texts.bytes(path.toString());
    }

    /** Opens a file to see what is in it. */
    public static Checkpoint open(Strategy strategy, Path path) {
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            DistModule.dist_checkpoint_open(uses.of(strategy, "strategy"), bytes(path), out);
            return new Checkpoint(new Native("checkpoint", out[0], DistModule::dist_checkpoint_destroy));
        }
    }

    /** How many tensors the file has. */
    public int size() {
        return askInt(handle -> (int) DistModule.dist_checkpoint_size(handle));
    }

    /** The name of tensor {@code index}, in the order of their data; "" where there is none. */
    public String name(int index) {
        return ask(handle -> Texts.of(DistModule.dist_checkpoint_name(handle, index)));
    }

    /** What a tensor is like, without its data. */
    public record Spec(DType dtype, List<Long> shape) {}

    /**
     * A tensor's dtype and shape.
     *
     * @throws DistException NOT_FOUND no such tensor; UNIMPLEMENTED a dtype that libdist has not
     */
    public Spec spec(String name) {
        return ask(handle -> {
            long[] out = Tensor.room();
            DistModule.dist_checkpoint_spec(handle, Texts.bytes(name, "name"), out);
            if (out[1] == 0) {
                throw new DistException(
                        Status.UNIMPLEMENTED, "tensor " + name + " has a dtype that libdist has not");
            }
            Long[] shape = new Long[(int) out[2]];
            for (int d = 0; d < shape.length; d++) {
                shape[d] = out[4 + d];
            }
            return new Spec(DType.of((int) out[1]), List.of(shape));
        });
    }

    /** Reads a tensor. */
    public Value read(String name) {
        return ask(handle -> {
            long[] out = new long[1];
            DistModule.dist_checkpoint_read(handle, Texts.bytes(name, "name"), out);
            return Value.taken(out[0]);
        });
    }

    /**
     * A tensor in the file's own memory, which replicas and processes share; it is not to be written. It stays as it is where
     * another file takes this one's place; where others write into the file, {@link #read} it.
     *
     * @param verify compares its checksum, which reads all of it
     */
    public Value map(String name, boolean verify) {
        return mapped(verify, (handle, options, out) ->
                DistModule.dist_checkpoint_map(handle, Texts.bytes(name, "name"), options, out));
    }

    /** All tensors in the file's own memory, as a dictionary by their names: {@link #map}. */
    public Value mapAll(boolean verify) {
        return mapped(verify, DistModule::dist_checkpoint_map_all);
    }

    private interface MapCall {
        void call(long handle, dist_checkpoint_map_options options, long[] out);
    }

    private Value mapped(boolean verify, MapCall call) {
        dist_checkpoint_map_options options = new dist_checkpoint_map_options();
        try {
            options.setVerify(verify ? 1 : 0);
            return ask(handle -> {
                long[] out = new long[1];
                call.call(handle, options, out);
                return Value.taken(out[0]);
            });
        } finally {
            options.delete();
        }
    }

    /** All texts of the file, libdist's among them, in its order. */
    public Map<String, String> metadata() {
        return ask(handle -> {
            Map<String, String> all = new LinkedHashMap<>();
            for (long i = 0; i < DistModule.dist_checkpoint_num_metadata(handle); i++) {
                byte[] key = DistModule.dist_checkpoint_metadata_key(handle, i);
                all.put(Texts.of(key), Texts.of(DistModule.dist_checkpoint_metadata(handle, key)));
            }
            return all;
        });
    }
}
