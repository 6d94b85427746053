"""How useful and how safe a release is: one file a question, one entrance (`shoal.assess`)."""
