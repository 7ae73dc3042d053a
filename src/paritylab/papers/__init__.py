"""The papers that come with the package. They use the door that everybody's papers use (:mod:`paritylab.claims`)."""
