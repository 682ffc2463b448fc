"""Training, evaluation and prediction with models."""

from keras.src.trainers import trainer as base_trainer


class RetrogradeTrainer(base_trainer.Trainer):
    """Mixed into every Keras model."""
