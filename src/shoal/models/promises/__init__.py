"""One model in each file: a class, and the kernels that say what a group reaches and lacks.

A new model is a file here that exports its class; `shoal.models.model_registry` finds it. It derives from
`shoal.models.model.Model`, names its kinds of rule, and says which parameter asks for it; as text it is the name of its
file, a colon and its numbers, if it is not the one that its parameter is named after.
"""
