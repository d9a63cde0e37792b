# SPDX-License-Identifier: Apache-2.0
"""Writes the files of this folder with Keras, from weights that are counted: see README.md. Run with KERAS_BACKEND=numpy."""
import json
import pathlib

import numpy as np

import keras

HERE = pathlib.Path(__file__).resolve().parent


def counted(model):
    """Each variable holds consecutive numbers; the first begins at 0, the next where it ends."""
    at = 0
    for variable in model.variables:
        count = int(np.prod(variable.shape))
        if not np.issubdtype(variable.dtype, np.unsignedinteger):
            variable.assign(np.arange(at, at + count, dtype="f4").reshape(variable.shape))
            at += count
    return model


def small():
    return counted(keras.Sequential([
        keras.Input((4,), name="in"), keras.layers.Dense(3, name="first", activation="relu"),
        keras.layers.BatchNormalization(name="norm"), keras.layers.Dense(2, name="second", dtype="float16")], name="small"))


def save(model, name):
    model.save(HERE / name)
    values = {variable.path: [str(variable.dtype), list(variable.shape), np.asarray(variable).ravel().astype(float).tolist()]
              for variable in model.variables}
    (HERE / (name + ".json")).write_text(json.dumps(values) + "\n")


keras.utils.set_random_seed(1)
save(small(), "small.keras")
small().save_weights(HERE / "small.weights.h5")
small().save_weights(HERE / "divided.weights.json", max_shard_size=50 / 1024**3)  # a layer's variables are in two files
(HERE / "divided.weights.json").open("a").write("\n")
save(small(), "legacy.h5")
lambda_model = keras.Sequential([keras.Input((2,)), keras.layers.Lambda(lambda x: x * 2, name="twice"), keras.layers.Dense(1, name="out")])
save(counted(lambda_model), "lambda.keras")
