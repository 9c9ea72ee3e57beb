"""The site's own registry of images, in a lab from which nothing outside can be reached: a real docker-registry.

    images       what OpenShift's release consists of, as images that are named by digest
    registry     docker-registry's configuration

Which names the images have elsewhere is what a stack file says in `installConfig.imageDigestSources`.
"""
