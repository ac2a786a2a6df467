// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

import org.libdist.internal.DistModule;

/** The number of pipelines that produce batches (TensorFlow: InputReplicationMode). */
public enum InputMode {
    /** One pipeline; its elements are divided among the replicas. */
    PER_WORKER(0x1100),
    /** One pipeline per replica. */
    PER_REPLICA(0x1101);

    final int code;

    InputMode(int code) {
        this.code = code;
    }

    static InputMode of(int code) {
        return switch (code) {
            case 0x1100 -> PER_WORKER;
            case 0x1101 -> PER_REPLICA;
            default -> throw new DistException(Status.INTERNAL, "InputMode: libdist gave " + code);
        };
    }

    /** Returns TensorFlow's name of this constant; null if it has none. */
    public String tfName() {
        return Texts.of(DistModule.dist_enum_name(DistModule.DIST_ENUM_INPUT_MODE, code));
    }

    /**
     * Converts TensorFlow's name. Upper and lower case are equal. Use it for settings from files and command lines.
     *
     * @throws DistException INVALID_ARGUMENT if the name is unknown; the message lists the known names
     */
    public static InputMode fromName(String name) {
        int[] out = new int[1];
        DistModule.dist_enum_from_name(DistModule.DIST_ENUM_INPUT_MODE, Texts.bytes(name, "name"), out);
        return of(out[0]);
    }
}
